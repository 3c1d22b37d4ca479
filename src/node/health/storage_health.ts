import { SingleFlight } from "../../async/single_flight.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { TargetAddress } from "../../volume/ports/node_ports.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import {
  type AddressReading,
  judgeStorage,
  type StorageProblem,
} from "../../volume/rules/health/storage_health.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeDeps } from "../deps.ts";

/** How long an answer is reused, so that a router is asked at most six times a minute. */
const keptMs = 10_000;
/** How long a router, or the state folder, may take to answer. All are asked at once. */
const answerMs = 4_000;
/** How long all reads together may take; more than they need. */
const limitMs = 10_000;
/** How many volumes' connections are read at a silent address: a few show as much as hundreds. */
const maxAsked = 8;

/** Problems of what all volumes of this node depend on, read no more often than every few seconds. */
export class StorageHealth {
  readonly #deps: NodeDeps;
  readonly #reads = new SingleFlight<readonly StorageProblem[]>();
  #recent: { readonly problems: readonly StorageProblem[]; readonly atMs: number } | undefined;

  constructor(deps: NodeDeps) {
    this.#deps = deps;
  }

  /**
   * Returns an empty list when all is well. Asks the addresses of the node's volumes what they offer; a node without
   * volumes asks none. Callers share one read, which goes on when a caller leaves. A failed read is not kept.
   *
   * @throws {VolumeError} deadline when the reads take too long; the reason of the call's end
   */
  async problems(context: CallContext): Promise<readonly StorageProblem[]> {
    const { clock } = this.#deps;
    context.signal.throwIfAborted();
    const recent = this.#recent;
    if (recent !== undefined && clock.monotonicMs() - recent.atMs < keptMs) return recent.problems;
    const read = this.#reads.run(() => this.#read());
    return await withDeadline(clock, context, limitMs, "wait for the answer", () => read);
  }

  async #read(): Promise<readonly StorageProblem[]> {
    const { clock } = this.#deps;
    const { signal } = new AbortController();
    const own = { requestId: "shared", signal };
    const work = (context: CallContext) => readAndJudge(this.#deps, context);
    const problems = await withDeadline(clock, own, limitMs, "look it up", work);
    this.#recent = { problems, atMs: clock.monotonicMs() };
    return problems;
  }
}

async function readAndJudge(deps: NodeDeps, context: CallContext): Promise<readonly StorageProblem[]> {
  const staged = await deps.stagingStore.all();
  const [obstacle, stateFailure, addresses] = await Promise.all([
    deps.connector.obstacle(context),
    failureOf(deps, context, "write to the state folder", () => tryState(deps)),
    Promise.all(
      targetsOf(staged).map(([where, target]) => readAddress(deps, staged, where, target, context)),
    ),
  ]);
  const groups = new Map(
    staged.map((stagingState) => [whereabouts(stagingState).join(), whereabouts(stagingState)]),
  );
  return judgeStorage({ obstacle, stateFailure, addresses, groups: [...groups.values()] });
}

async function tryState({ paths, settings }: NodeDeps): Promise<void> {
  const path = `${settings.statePath}/writable`;
  await paths.writeFile(path, "", 0o600);
  await paths.removeFile(path);
}

/** Every address in use, with its text for people. */
function targetsOf(staged: readonly StagingState[]): readonly (readonly [string, TargetAddress])[] {
  const targets = staged.flatMap(({ intent: { addresses, port } }) =>
    addresses.map((address) => ({ address, port }))
  );
  return [...new Map(targets.map((target) => [written(target), target]))];
}

async function readAddress(
  deps: NodeDeps,
  staged: readonly StagingState[],
  where: string,
  target: TargetAddress,
  context: CallContext,
): Promise<AddressReading> {
  const ask = (limited: CallContext) => deps.connector.offered(target, limited);
  const failure = await failureOf(deps, context, "get an answer", ask);
  const live = failure !== undefined && await isLiveAt(deps, staged, where, context);
  return { where, failure, live };
}

async function isLiveAt(
  deps: NodeDeps,
  staged: readonly StagingState[],
  where: string,
  context: CallContext,
): Promise<boolean> {
  const there = staged.filter((stagingState) => whereabouts(stagingState).includes(where)).slice(
    0,
    maxAsked,
  );
  for (const { intent: { nqn } } of there) {
    const connections = await deps.connector.connections(nqn, context);
    if (connections.some((path) => path.state === "live" && written(path) === where)) return true;
  }
  return false;
}

/** Why the read failed, for people; undefined when it did not. */
async function failureOf(
  deps: NodeDeps,
  context: CallContext,
  what: string,
  attempt: (limited: CallContext) => Promise<unknown>,
): Promise<string | undefined> {
  try {
    await withDeadline(deps.clock, context, answerMs, what, attempt);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    return messageOf(error);
  }
}

function whereabouts({ intent: { addresses, port } }: StagingState): readonly string[] {
  return addresses.map((address) => written({ address, port }));
}

function written({ address, port }: TargetAddress): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
