import { SingleFlight } from "../../async/single_flight.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { TargetAddress } from "../../volume/ports/node_ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";
import { type AddressLook, judgeStorage, type StorageProblem } from "../../volume/rules/storage_health.ts";
import { Stashes } from "../stage/staging_store.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeWorld } from "../deps.ts";

/** How long an answer is good: whoever asks, the router is asked six times a minute at most. */
const keptMs = 10_000;
/** How long a router, or the state folder, may take to answer; all are asked at once. */
const answerMs = 4_000;
/** More than all looks together may take. */
const limitMs = 10_000;
/** Of how many volumes at a silent address the connections are looked at: a few say as much as hundreds. */
const maxAsked = 8;

/** What is wrong with what all volumes of this node stand on, looked at no more often than every few seconds. */
export class StorageHealth {
  readonly #world: NodeWorld;
  readonly #reads = new SingleFlight<readonly StorageProblem[]>();
  #recent: { readonly problems: readonly StorageProblem[]; readonly atMs: number } | undefined;

  constructor(world: NodeWorld) {
    this.#world = world;
  }

  /**
   * Nothing when all is well. Asks the addresses that the node's volumes are reached at what they offer; a node that
   * has none asks nobody. Callers share one read, which none of them ends. A failed read is not kept.
   *
   * @throws {VolumeError} deadline when the looks take too long; the reason of the call's end
   */
  async problems(context: CallContext): Promise<readonly StorageProblem[]> {
    const { clock } = this.#world;
    context.signal.throwIfAborted();
    const recent = this.#recent;
    if (recent !== undefined && clock.monotonicMs() - recent.atMs < keptMs) return recent.problems;
    const read = this.#reads.run(() => this.#read());
    return await withDeadline(clock, context, limitMs, "wait for the answer", () => read);
  }

  async #read(): Promise<readonly StorageProblem[]> {
    const { clock } = this.#world;
    const { signal } = new AbortController();
    const own = { requestId: "shared", signal, deadlineMs: Infinity };
    const work = (context: CallContext) => lookAndJudge(this.#world, context);
    const problems = await withDeadline(clock, own, limitMs, "look it up", work);
    this.#recent = { problems, atMs: clock.monotonicMs() };
    return problems;
  }
}

async function lookAndJudge(world: NodeWorld, context: CallContext): Promise<readonly StorageProblem[]> {
  const stashes = await new Stashes(world).all();
  const [obstacle, stateFailure, addresses] = await Promise.all([
    world.connector.obstacle(context),
    failureOf(world, context, "write to the state folder", () => tryState(world)),
    Promise.all(
      targetsOf(stashes).map(([where, target]) => lookAtAddress(world, stashes, where, target, context)),
    ),
  ]);
  const groups = new Map(stashes.map((stash) => [whereabouts(stash).join(), whereabouts(stash)]));
  return judgeStorage({ obstacle, stateFailure, addresses, groups: [...groups.values()] });
}

async function tryState({ paths, settings }: NodeWorld): Promise<void> {
  const path = `${settings.statePath}/writable`;
  await paths.writeFile(path, "", 0o600);
  await paths.removeFile(path);
}

/** Every address in use, with how it is written. */
function targetsOf(stashes: readonly Stash[]): readonly (readonly [string, TargetAddress])[] {
  const targets = stashes.flatMap(({ addresses, port }) => addresses.map((address) => ({ address, port })));
  return [...new Map(targets.map((target) => [written(target), target]))];
}

async function lookAtAddress(
  world: NodeWorld,
  stashes: readonly Stash[],
  where: string,
  target: TargetAddress,
  context: CallContext,
): Promise<AddressLook> {
  const ask = (limited: CallContext) => world.connector.offered(target, limited);
  const failure = await failureOf(world, context, "get an answer", ask);
  const live = failure !== undefined && await isLiveAt(world, stashes, where, context);
  return { where, failure, live };
}

async function isLiveAt(
  world: NodeWorld,
  stashes: readonly Stash[],
  where: string,
  context: CallContext,
): Promise<boolean> {
  const there = stashes.filter((stash) => whereabouts(stash).includes(where)).slice(0, maxAsked);
  for (const { nqn } of there) {
    const connections = await world.connector.connections(nqn, context);
    if (connections.some((path) => path.state === "live" && written(path) === where)) return true;
  }
  return false;
}

/** Why it failed, for people; undefined when it did not. */
async function failureOf(
  world: NodeWorld,
  context: CallContext,
  what: string,
  attempt: (limited: CallContext) => Promise<unknown>,
): Promise<string | undefined> {
  try {
    await withDeadline(world.clock, context, answerMs, what, attempt);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    if (VolumeError.is(error)) return error.message;
    return error instanceof Error ? error.message : String(error);
  }
}

function whereabouts({ addresses, port }: Stash): readonly string[] {
  return addresses.map((address) => written({ address, port }));
}

function written({ address, port }: TargetAddress): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
