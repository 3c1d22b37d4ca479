import { withDeadline } from "../../async/deadline.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps, VolumeLock } from "../deps.ts";
import { findMultipath } from "../chain/chain.ts";
import { disconnectUnrecorded } from "./teardown.ts";

/** How long a check of one connection may take, in milliseconds. */
const checkMs = 30_000;

/**
 * Connections that were made without the volume's lock: an unstage may have run in between, and then such a connection
 * belongs to no volume.
 */
export class DoubtfulConnections {
  readonly #deps: NodeDeps;
  readonly #lock: VolumeLock;
  /** By NQN, those that could not be checked yet because a call held the lock. */
  readonly #inDoubt = new Map<string, StagingState>();

  constructor(deps: NodeDeps, lock: VolumeLock) {
    this.#deps = deps;
    this.#lock = lock;
  }

  /** A connect has not ended in its time, and the kernel may still carry it out: the next check looks again. */
  suspect(stagingState: StagingState): void {
    this.#inDoubt.set(stagingState.intent.nqn, stagingState);
  }

  /**
   * Drops a connection whose volume was unstaged meanwhile. While there is a map, its unstage ends the connection. When
   * a call holds the lock, {@linkcode DoubtfulConnections.check} tries again.
   *
   * @throws {VolumeError} in-use when something has the device all the same; precondition when the state file is damaged,
   *   and so says nothing
   */
  async dropIfUnstaged(stagingState: StagingState, context: CallContext): Promise<void> {
    const { volumeId, intent: { stagingPath, nqn } } = stagingState;
    this.#inDoubt.delete(nqn);
    if (await findMultipath(this.#deps, nqn) !== undefined) return;
    const release = context.signal.aborted ? undefined : this.#lock.tryTake([volumeId, stagingPath]);
    if (release === undefined) return void this.#inDoubt.set(nqn, stagingState);
    try {
      const current = await this.#deps.stagingStore.find(volumeId);
      if (current?.intent.nqn !== nqn) await disconnectUnrecorded(this.#deps, nqn, context);
    } finally {
      release();
    }
  }

  /** Checks those that are in doubt. It never fails: a failure is logged. */
  async check(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#inDoubt.values()].map((each) => this.#checkOne(each, signal)));
  }

  async #checkOne(stagingState: StagingState, signal: AbortSignal): Promise<void> {
    const { clock, notes } = this.#deps;
    const { nqn } = stagingState.intent;
    const whole = { requestId: `connection-${nqn}`, signal };
    try {
      await withDeadline(clock, whole, checkMs, `look at the connection ${nqn}`, async (context) => {
        await this.dropIfUnstaged(stagingState, context);
      });
    } catch (error) {
      if (!signal.aborted) notes?.warn("left a new connection alone", { nqn, why: messageOf(error) });
    }
  }
}
