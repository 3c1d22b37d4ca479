import { VolumeError } from "../../volume/errors.ts";
import { defaultFenceSettleMs, type FenceResult, judgeFence } from "../../volume/rules/fence.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Connection, TargetAddress } from "../../volume/ports/node_ports.ts";
import type { FenceMemory, StagingState } from "../../volume/model/staging/state.ts";
import { targetsOf, withMissed } from "../../volume/model/staging/here.ts";
import { endQueueing, isQueueing } from "../layer/queueing.ts";
import { isAnyMounted } from "../mount_table.ts";
import { OfferedReads, TargetReader } from "./offered_reads.ts";
import { connectedNqns, type Teardown } from "../connections/observe.ts";
import type { NodeDeps } from "../deps.ts";

/** A connection to be judged. */
export interface FenceSubject {
  readonly volumeId: string;
  readonly nqn: string;
  /** This node's record of the volume, if it is of this connection. */
  readonly stagingState: StagingState | undefined;
  /** The paths to it as they were read shortly before. They count only while one is live, so that no old read fences. */
  readonly seen?: readonly Connection[];
  /** The NQN under which a call says that the volume is published now. */
  readonly publishedNqn?: string;
  /** Whether a call asks to unstage the volume. */
  readonly unstaging?: boolean;
  /** The target that a call asks to unpublish. If it is the only one, the volume is to be unstaged next. */
  readonly unpublishedTarget?: string;
}

/**
 * Finds volumes that the router has withdrawn from this node, and disconnects them, so that nothing waits for a
 * connection that never comes back.
 *
 * Disconnecting loses unwritten data, which is the purpose of a fence. So a volume that is not certainly fenced stays
 * connected.
 */
export class Fencing {
  readonly #deps: NodeDeps;
  readonly #reader: TargetReader;
  /**
   * The last result by NQN; undefined means that the target offered the volume. It is kept here because the state file
   * may be written only under the volume's lock, and a call that hangs can hold that for long.
   */
  readonly #seen = new Map<string, FenceMemory | undefined>();

  constructor(deps: NodeDeps) {
    this.#deps = deps;
    this.#reader = new TargetReader(deps);
  }

  /** Returns reads of targets that several judgements share. */
  newReads(): OfferedReads {
    return new OfferedReads(this.#reader);
  }

  /** Judges a connection and changes nothing. It asks a target only about a volume that is connected and not live. */
  async judge(subject: FenceSubject, reads: OfferedReads, context: CallContext): Promise<FenceResult> {
    const { nqn, stagingState, seen } = subject;
    const before = seen?.some(isLive) ? seen : await this.#deps.connector.connections(nqn, context);
    const queued = before.length === 0 && await isQueueing(this.#deps, nqn, context);
    const rest = (before.length === 0 && !queued) || before.some(isLive);
    const answers = rest ? [] : await reads.readAll(placesOf(before, stagingState));
    // The read took time, and a controller may have come back meanwhile.
    const connections = rest ? before : await this.#deps.connector.connections(nqn, context);
    if (stagingState?.here.staged === true) {
      this.#deps.events.occurred({ kind: "connections", volumeId: stagingState.volumeId, connections });
    }
    const isUnwanted = subject.unstaging === true || subject.unpublishedTarget !== undefined;
    const unstaging = !rest && isUnwanted &&
      !await this.#isPublished(stagingState, subject.unpublishedTarget);
    const result = judgeFence({
      ...subject,
      unstaging,
      connections,
      queued,
      host: this.#deps.connector.host,
      reads: answers,
      memory: this.#seen.has(nqn) ? this.#seen.get(nqn) : stagingState?.here.missed,
      nowMs: Math.min(this.#deps.clock.now(), ...answers.map((read) => read.beganMs)),
      settleMs: this.#deps.settings.fenceSettleMs ?? defaultFenceSettleMs,
    });
    if (result.state !== "fenced") this.#seen.set(nqn, memoryOf(result));
    return result;
  }

  /** Disconnects a fenced volume; returns false, and disconnects nothing, when the connection is live again. */
  async forceDisconnect(subject: FenceSubject, why: string, context: CallContext): Promise<boolean> {
    const { connector, notes, events } = this.#deps;
    const { volumeId, nqn } = subject;
    if ((await connector.connections(nqn, context)).some(isLive)) return false;
    notes?.warn("cutting off a fenced volume", { volumeId, nqn, why, requestId: context.requestId });
    // Queueing ends before the connection does: otherwise I/O that fails below the map would wait there.
    await endQueueing(this.#deps, nqn, context);
    await connector.forceDisconnect(nqn, context);
    events.occurred({ kind: "fenced-torn-down" });
    return true;
  }

  /**
   * Prepares a teardown by a call that holds the volume's lock, so that the teardown cannot hang: disconnects what is
   * fenced.
   *
   * @param call what the call says: the NQN under which the volume is published now, or that the volume is to be
   *   unstaged
   * @throws {VolumeError} unavailable while a file system is mounted whose target is away and may come back: its
   *   unwritten data would be lost, and unmounting it would hang
   */
  async release(
    volume: Teardown,
    context: CallContext,
    call: Pick<FenceSubject, "publishedNqn" | "unstaging">,
  ): Promise<void> {
    const reads = this.newReads();
    for (const nqn of volume.nqns) {
      const stagingState = volume.stagingState?.intent.nqn === nqn ? volume.stagingState : undefined;
      const subject = { volumeId: volume.volumeId, nqn, stagingState, ...call };
      const result = await this.judge(subject, reads, context);
      if (result.state === "fenced") await this.forceDisconnect(subject, result.why, context);
      if (!await isAnyMounted(this.#deps, volume.stagingPaths)) continue;
      if (result.state === "live" && await isQueueing(this.#deps, nqn, context)) {
        throw new VolumeError(
          "unavailable",
          `Cannot unmount the volume because writes wait for its device: volume=${volume.volumeId} ` +
            `nqn=${nqn}; it will be retried when the device is back`,
        );
      }
      if (result.state !== "undecided") continue;
      if (stagingState !== undefined) await this.#remember(stagingState, result.memory);
      throw new VolumeError(
        "unavailable",
        `Cannot unmount the volume because its connection is down and it is not known to be fenced: ` +
          `volume=${volume.volumeId} nqn=${nqn} because ${result.why}; it will be retried when the target answers`,
      );
    }
  }

  /**
   * Disconnects a fenced volume that is to be unpublished or unstaged and that is blocked: by another call's mkfs,
   * check, resize or mount, which holds the volume's lock, or by a workload's write, which keeps its target busy.
   * Neither ends before the connection does. It needs no lock, because it goes by NQN and writes nothing.
   *
   * @param unpublishedTarget the target to be unpublished; undefined when the volume is to be unstaged
   */
  async forceDisconnectPastLock(
    volumeId: string,
    context: CallContext,
    unpublishedTarget?: string,
  ): Promise<void> {
    const stagingState = await this.#deps.stagingStore.findUndamaged(volumeId);
    const connected = await connectedNqns(this.#deps, volumeId, context);
    const reads = this.newReads();
    for (
      const nqn of new Set([...(stagingState === undefined ? [] : [stagingState.intent.nqn]), ...connected])
    ) {
      const own = stagingState?.intent.nqn === nqn ? stagingState : undefined;
      const subject = {
        volumeId,
        nqn,
        stagingState: own,
        unstaging: unpublishedTarget === undefined,
        unpublishedTarget,
      };
      const result = await this.judge(subject, reads, context);
      if (result.state === "fenced") await this.forceDisconnect(subject, result.why, context);
    }
  }

  /** Forgets the results of all other connections. */
  keepOnly(nqns: ReadonlySet<string>): void {
    for (const nqn of this.#seen.keys()) if (!nqns.has(nqn)) this.#seen.delete(nqn);
  }

  /** A published volume is not unstaged: a workload still writes to it, and the target may be back by then. */
  async #isPublished(stagingState: StagingState | undefined, butAt: string | undefined): Promise<boolean> {
    const targets = stagingState === undefined ? [] : targetsOf(stagingState);
    return await isAnyMounted(this.#deps, targets.filter((target) => target !== butAt));
  }

  async #remember(stagingState: StagingState, memory: FenceMemory | undefined): Promise<void> {
    if (!isSameMemory(memory, stagingState.here.missed)) {
      await this.#deps.stagingStore.write({ ...stagingState, here: withMissed(stagingState.here, memory) });
    }
  }
}

/** What a result leaves to remember of the volume. */
export function memoryOf(result: FenceResult): FenceMemory | undefined {
  return result.state === "undecided" ? result.memory : undefined;
}

/** Whether both are equal. */
export function isSameMemory(one: FenceMemory | undefined, other: FenceMemory | undefined): boolean {
  return one?.lastMissedMs === other?.lastMissedMs && one?.missedForMs === other?.missedForMs &&
    one?.askedMs === other?.askedMs;
}

function isLive(connection: Connection): boolean {
  return connection.state === "live";
}

/**
 * The addresses where the volume is connected or known to be reachable. One address that offers it is enough to keep
 * it.
 */
function placesOf(
  connections: readonly Connection[],
  stagingState: StagingState | undefined,
): readonly TargetAddress[] {
  const known =
    stagingState?.intent.addresses.map((address) => ({ address, port: stagingState.intent.port })) ?? [];
  return [...connections.map(({ address, port }) => ({ address, port })), ...known];
}
