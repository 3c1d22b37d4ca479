import type { FenceMemory } from "../model/staging/state.ts";
import { type Epoch, parseEpoch } from "../model/epoch.ts";
import { encodeHandle } from "../model/ids/handles.ts";
import type { HostIdentity } from "../model/host/identity.ts";
import type { Connection, TargetAddress } from "../ports/node_ports.ts";

/** One attempt to read what a target offers. */
export interface OfferedRead extends TargetAddress {
  /** NQNs; undefined when the target did not answer completely. */
  readonly offered: readonly string[] | undefined;
}

/** All that is known when a connection is judged. */
export interface FenceInput {
  readonly volumeId: string;
  /** The NQN of the connected subsystem. */
  readonly nqn: string;
  /** The paths to it. */
  readonly connections: readonly Connection[];
  /** The identity under which this node asks targets; undefined where the connector has none. */
  readonly host: HostIdentity | undefined;
  /** Whether writes wait in a map for a connection that the kernel has given up. @default {false} */
  readonly queued?: boolean;
  readonly reads: readonly OfferedRead[];
  /** The NQN under which the controller publishes the volume now, if a call has said so. */
  readonly publishedNqn?: string;
  /** Whether a call unstages the volume: then nothing on this node wants to write to it. */
  readonly unstaging: boolean;
  readonly memory: FenceMemory | undefined;
  /** When the reads began, in milliseconds since the Unix epoch. */
  readonly nowMs: number;
  /** The settle time in milliseconds; {@linkcode settleTimesToUnstage} of them have to pass. */
  readonly settleMs: number;
}

/** The result of judging a connection. */
export type FenceResult =
  /** Nothing is connected: nothing can hang, and there is nothing to disconnect. */
  | { readonly state: "gone" }
  | { readonly state: "live" }
  | { readonly state: "fenced"; readonly why: string }
  /** To be judged again, with that memory; without one the clock starts again. */
  | { readonly state: "undecided"; readonly why: string; readonly memory: FenceMemory | undefined };

/**
 * A gap between two reads counts for at most this part of the settle time. So neither a clock that was set forward nor
 * a suspended machine makes a few reads look like a long time.
 */
export const gapsPerSettleTime = 3;

/** The default settle time. */
export const defaultFenceSettleMs = 120_000;

/** For how many settle times reads must not offer a volume before an unstage may disconnect it. */
export const settleTimesToUnstage = 10;

/**
 * How long a call to unstage stays in effect: the kubelet repeats it after two minutes, and waits up to two minutes for
 * each.
 */
const askLastsMs = 300_000;

/**
 * Decides whether the router has withdrawn a volume from this node. Only then may it be disconnected: a router that is
 * silent, still starting, or reconfigured for a moment has not withdrawn it.
 *
 * Another epoch proves a withdrawal only if it is later. Epochs that the router offers are later also with the same
 * counter: there are two of them only when it went back in time in between, and then it offers the present one.
 * An earlier epoch, or a name that cannot be parsed, can come from a router that forgot its last seconds or from a
 * person's edit, which the controller may still correct: it counts as a read that does not offer the volume.
 *
 * Such a read proves nothing: a router that boots slowly and a pool that waits for its password look the same for
 * hours. It counts only while the volume is being unstaged, and only after a long time, so that an unstage ends.
 */
export function judgeFence(input: FenceInput): FenceResult {
  const { connections, volumeId, nqn } = input;
  const queued = input.queued === true && connections.length === 0;
  if (connections.length === 0 && !queued) return { state: "gone" };
  if (connections.some((path) => path.state === "live")) return { state: "live" };
  const foreign = connections.find((path) => !isOfHost(path, input.host));
  if (foreign !== undefined) {
    return undecided(`it is connected as another host: hostnqn=${foreign.hostNqn} hostid=${foreign.hostId}`);
  }
  const offers = input.reads.flatMap((read) => read.offered ?? []);
  if (offers.includes(nqn)) return undecided("its target offers it");
  // A call may be an old one: of two epochs with one counter it does not say which is over.
  if (input.publishedNqn !== undefined && isAhead(input.publishedNqn, nqn, volumeId, 1)) {
    return { state: "fenced", why: `it is published in a later epoch: nqn=${input.publishedNqn}` };
  }
  const answers = input.reads.filter((read) =>
    read.offered !== undefined && (queued || leadsTo(read, connections))
  );
  if (answers.length === 0) return undecided("its target does not answer");
  const successor = answers.flatMap((read) => read.offered!)
    .find((other) => isAhead(other, nqn, volumeId, 0));
  if (successor !== undefined) {
    return { state: "fenced", why: `its target offers a later epoch of it: nqn=${successor}` };
  }
  return judgeMissing(input);
}

function judgeMissing(input: FenceInput): FenceResult {
  const memory = missedAgain(input);
  const minMs = settleTimesToUnstage * input.settleMs;
  if (input.unstaging && memory !== undefined && memory.missedForMs > minMs) {
    const missed = `missed-ms=${memory.missedForMs} min-ms=${minMs}`;
    return {
      state: "fenced",
      why: `it is being unstaged, and its target has not offered it for long: ${missed}`,
    };
  }
  return undecided("its target does not offer it, perhaps only for a while", memory);
}

/**
 * The clock runs from the first call to unstage. Other checks let it run on; it ends when no unstage is requested any
 * more.
 *
 * A memory from the future was written by another clock. In a gap as long as the settle time the volume may have come
 * back, and the router may be starting again.
 */
function missedAgain({ memory, nowMs, settleMs, unstaging }: FenceInput): FenceMemory | undefined {
  const lastAskedMs = memory?.askedMs ?? -Infinity;
  const isAsked = nowMs >= lastAskedMs && nowMs - lastAskedMs <= askLastsMs;
  if (!unstaging && !isAsked) return undefined;
  const askedMs = unstaging ? nowMs : lastAskedMs;
  const gapMs = memory === undefined ? -1 : nowMs - memory.lastMissedMs;
  if (memory === undefined || !isAsked || gapMs < 0 || gapMs > settleMs) {
    return { lastMissedMs: nowMs, missedForMs: 0, askedMs };
  }
  const countedMs = Math.min(gapMs, settleMs / gapsPerSettleTime);
  return { lastMissedMs: nowMs, missedForMs: memory.missedForMs + countedMs, askedMs };
}

function undecided(why: string, memory?: FenceMemory): FenceResult {
  return { state: "undecided", why, memory };
}

/** Whether a connection was made by this host: what is offered to one host says nothing about another's. */
export function isOfHost(connection: Connection, host: HostIdentity | undefined): boolean {
  return connection.hostNqn === (host?.hostNqn ?? "") && connection.hostId === (host?.hostId ?? "");
}

/**
 * Whether a read asked one of the connection's addresses: a target lists only what it offers at the address and port
 * where it is asked.
 */
function leadsTo(read: OfferedRead, connections: readonly Connection[]): boolean {
  return connections.some((path) => path.address === read.address && path.port === read.port);
}

/** Whether `other` names another epoch of the same volume, whose counter is larger by that much at least. */
function isAhead(other: string, nqn: string, volumeId: string, atLeast: 0 | 1): boolean {
  const [own, theirs] = [splitNqn(nqn, volumeId), splitNqn(other, volumeId)];
  if (own === undefined || theirs?.epoch === undefined || own.base !== theirs.base) return false;
  if (own.epoch === undefined) return true;
  return other !== nqn && theirs.epoch.counter >= own.epoch.counter + atLeast;
}

/**
 * Splits `<prefix>:<volume>` from the epoch, which exports of the legacy driver do not have; undefined for anything
 * else.
 */
function splitNqn(
  nqn: string,
  volumeId: string,
): { readonly base: string; readonly epoch: Epoch | undefined } | undefined {
  const ending = `:${encodeHandle(volumeId)}`;
  if (nqn.endsWith(ending)) return { base: nqn, epoch: undefined };
  const at = nqn.lastIndexOf(":");
  const [base, epoch] = [nqn.slice(0, at), parseEpoch(nqn.slice(at + 1))];
  return at > 0 && base.endsWith(ending) && epoch !== undefined ? { base, epoch } : undefined;
}
