import type { CallContext, Clock, Inventory, Random } from "../../volume/ports/ports.ts";
import type { Fragment } from "../../routeros/console/command.ts";
import { Exchange } from "../../routeros/console/exchange.ts";
import { resourceQuery } from "../../routeros/store/queries.ts";
import type { Session } from "../../routeros/ssh/session.ts";
import { RouterVolumeStore } from "../../routeros/store/volume_store.ts";
import type { Asking, CheckSettings, RouterCheck } from "./check.ts";
import { VolumeError } from "../../volume/errors.ts";
import { basePathsCheck, disksCheck, poolsCheck } from "./storage.ts";
import { clockCheck, packageCheck, versionCheck } from "./software.ts";
import { type Finding, problem, warning } from "../../volume/model/finding.ts";
import { policyCheck, sessionsCheck } from "./access.ts";

/** What a {@linkcode SessionAsking} needs. */
interface SessionAskingOptions {
  readonly session: Session;
  readonly clock: Clock;
  readonly random: Random;
  /** Ends every question. */
  readonly context: CallContext;
}

/** Asks over one session. */
export class SessionAsking implements Asking {
  readonly #exchange: Exchange;
  readonly #store: RouterVolumeStore;
  readonly #context: CallContext;

  constructor(options: SessionAskingOptions) {
    this.#exchange = new Exchange(options);
    this.#store = new RouterVolumeStore(options);
    this.#context = options.context;
  }

  async read(what: string, query: Fragment): Promise<string> {
    const question = { kind: what, key: "", queries: [query], context: this.#context };
    return (await this.#exchange.ask(question)).frames[0]!;
  }

  async attempt(what: string, statement: Fragment): Promise<string | undefined> {
    const question = { kind: what, key: "", queries: [resourceQuery], context: this.#context };
    const { answer, refusal } = await this.#exchange.tell([statement], question);
    return answer === undefined ? refusal ?? "it did not answer" : undefined;
  }

  inventory(): Promise<Inventory> {
    return this.#store.inventory(this.#context);
  }
}

/** Everything that is looked at on a router that let the driver in, in the order in which it is reported. */
export const routerChecks: readonly RouterCheck[] = [
  versionCheck,
  packageCheck,
  policyCheck,
  sessionsCheck,
  clockCheck,
  poolsCheck,
  basePathsCheck,
  disksCheck,
];

/**
 * Runs every check; one that cannot be answered is a finding itself, and stops none behind it.
 *
 * @throws {VolumeError} cancelled when the call is
 */
export async function runRouterChecks(router: Asking, settings: CheckSettings): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const check of routerChecks) {
    try {
      findings.push(...await check.run(router, settings));
    } catch (error) {
      if (!VolumeError.is(error) || error.kind === "cancelled") throw error;
      const judge = check.essential ? problem : warning;
      findings.push(judge(check.name, `it could not be asked: ${error.message}`));
    }
  }
  return findings;
}
