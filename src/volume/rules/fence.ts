import type { FenceMemory } from "../model/staging_state.ts";
import { type Epoch, parseEpoch } from "../model/epoch.ts";
import { encodeHandle } from "../model/ids.ts";
import type { HostIdentity } from "../model/host_identity.ts";
import type { Connection, TargetAddress } from "../ports/node_ports.ts";

/** One attempt to read what a target offers. */
export interface OfferedRead extends TargetAddress {
  /** NQNs; undefined when the target did not answer, or not whole. */
  readonly offered: readonly string[] | undefined;
}

/** All that is known when a connection is judged. */
export interface FenceInput {
  readonly volumeId: string;
  /** The subsystem NQN that it is connected as here. */
  readonly nqn: string;
  /** The paths to it. */
  readonly connections: readonly Connection[];
  /** Whom this node's questions are answered as; undefined where the connector has no such names. */
  readonly host: HostIdentity | undefined;
  /** Whether writes wait in a map for a connection that the kernel has given up. @default {false} */
  readonly queued?: boolean;
  readonly reads: readonly OfferedRead[];
  /** The NQN under which the controller publishes the volume now, where a call has said so. */
  readonly publishedNqn?: string;
  /** Whether this is for a call that unstages the volume: nobody here wants to write to it any more. */
  readonly unstaging: boolean;
  readonly memory: FenceMemory | undefined;
  /** When the reads began, in milliseconds since the Unix epoch. */
  readonly nowMs: number;
  /** The settle time, of which {@linkcode settleTimesToUnstage} have to pass, in milliseconds. */
  readonly settleMs: number;
}

/** What a look at a connection comes to. */
export type FenceResult =
  /** Nothing is connected: nothing can hang, and there is nothing to cut off. */
  | { readonly state: "gone" }
  | { readonly state: "live" }
  | { readonly state: "fenced"; readonly why: string }
  /** To be looked at again, with that memory; without one the clock starts anew. */
  | { readonly state: "undecided"; readonly why: string; readonly memory: FenceMemory | undefined };

/**
 * No gap between two reads counts for more than this part of the settle time: neither a clock that was set forward nor a
 * machine that stood still makes a few reads look like a long time.
 */
export const gapsPerSettleTime = 3;

/** The settle time, unless a setting says otherwise. */
export const defaultFenceSettleMs = 120_000;

/** For how many settle times reads have to lack a volume before an unstage may cut it off. */
export const settleTimesToUnstage = 10;

/** How long a call to unstage counts as the last word: the kubelet comes again after two minutes, and waits two for each. */
const askLastsMs = 300_000;

/**
 * Whether the router has taken a volume away from this node. Only then may it be cut off: a router that is silent, that
 * is still starting, or that somebody reconfigures for a moment, is none that has.
 *
 * Another epoch proves it only if it is a later one. An earlier one, or a name that is not understood, can be a router
 * that forgot its last seconds or a person's edit, which the controller may yet put right: it counts as the volume lacking.
 *
 * A lack proves nothing: a router that boots slowly and a pool that waits for its password look the same for hours. It
 * counts only for who unstages the volume, and only after long, so that an unstage ends.
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
  if (input.publishedNqn !== undefined && isLater(input.publishedNqn, nqn, volumeId)) {
    return { state: "fenced", why: `it is published in a later epoch: nqn=${input.publishedNqn}` };
  }
  const answers = input.reads.filter((read) =>
    read.offered !== undefined && (queued || leadsTo(read, connections))
  );
  if (answers.length === 0) return undecided("its target does not answer");
  const successor = answers.flatMap((read) => read.offered!).find((other) => isLater(other, nqn, volumeId));
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
 * The clock runs from the first call to unstage, and other looks let it run on; it ends when nobody asks any more.
 *
 * A memory from the future was written by another clock than this. In a gap as long as the settle time the volume may have
 * come back, and the router may be starting once more.
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

/** Whether a connection was made as this host: what is offered to one host says nothing about another's. */
export function isOfHost(connection: Connection, host: HostIdentity | undefined): boolean {
  return connection.hostNqn === (host?.hostNqn ?? "") && connection.hostId === (host?.hostId ?? "");
}

/** A target lists only what it offers at the address and port that it is asked at. */
function leadsTo(read: OfferedRead, connections: readonly Connection[]): boolean {
  return connections.some((path) => path.address === read.address && path.port === read.port);
}

/** Whether `other` names a later epoch of the same volume. */
function isLater(other: string, nqn: string, volumeId: string): boolean {
  const [own, theirs] = [splitNqn(nqn, volumeId), splitNqn(other, volumeId)];
  if (own === undefined || theirs?.epoch === undefined || own.base !== theirs.base) return false;
  return own.epoch === undefined || theirs.epoch.counter > own.epoch.counter;
}

/** `<prefix>:<volume>` and the epoch, which what the legacy driver exported has not; undefined for anything else. */
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
