import type { CallContext, Clock, Inventory, Random } from "../../volume/ports/ports.ts";
import type { Fragment } from "../../routeros/console/command.ts";
import { Exchange } from "../../routeros/console/exchange.ts";
import { resourceQuery } from "../../routeros/store/queries.ts";
import type { Session } from "../../routeros/ssh/session.ts";
import { RouterVolumeStore } from "../../routeros/store/volume_store.ts";
import type { Asking } from "./check.ts";

/** What a {@linkcode SessionAsking} needs. */
export interface SessionAskingOptions {
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
    const { answer, refusal } = await this.#exchange.exec([statement], question);
    return answer === undefined ? refusal ?? "it did not answer" : undefined;
  }

  inventory(): Promise<Inventory> {
    return this.#store.inventory(this.#context);
  }
}
