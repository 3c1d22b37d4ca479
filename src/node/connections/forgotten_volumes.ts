import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { targetsOf } from "../../volume/model/staging/here.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { isAnyMounted } from "../mount_table.ts";
import { unstageVolume } from "../stage/unstage.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * How long a kubelet that has registered this driver may take to ask for the volumes it uses, in milliseconds. It
 * retries a mount after two minutes at most.
 */
const settleMs = 10 * 60_000;

/**
 * Releases volumes that a kubelet has forgotten over a restart. A kubelet that is killed between NodeUnpublish and
 * NodeUnstage finds no pod of the volume when it starts again, and never calls NodeUnstage (kubernetes issues 101791,
 * 121937): the connection would stay.
 *
 * A volume is forgotten when no call has named it since the kubelet registered this driver, and none of its targets is
 * mounted. Every start of a kubelet registers the driver.
 */
export class ForgottenVolumes {
  readonly #deps: NodeDeps;
  readonly #fencing: Fencing;
  #registeredMs: number | undefined;
  /** Volumes that the kubelet knows of, until they are unstaged. */
  readonly #known = new Set<string>();

  constructor(deps: NodeDeps, fencing: Fencing) {
    this.#deps = deps;
    this.#fencing = fencing;
  }

  /** Notes that a kubelet registers the driver: it has asked for the node's info. */
  registered(): void {
    this.#registeredMs = this.#deps.clock.monotonicMs();
    this.#known.clear();
  }

  /** Notes that a call names the volume. */
  named(volumeId: string): void {
    this.#known.add(volumeId);
  }

  /** Notes, while the volume's lock is held, that its state file is gone: there is nothing to release. */
  gone(volumeId: string): void {
    this.#known.delete(volumeId);
  }

  /** Whether the kubelet has had time to ask for the volume, and has not. */
  mayBe({ volumeId }: StagingState): boolean {
    const { clock } = this.#deps;
    return this.#registeredMs !== undefined && clock.monotonicMs() - this.#registeredMs >= settleMs &&
      !this.#known.has(volumeId);
  }

  /**
   * Releases the volume, whose lock is held, if it is forgotten and not in use. If it is in use, it stays connected and
   * can be staged again. A mount in another namespace is found only after the driver's own mount is gone.
   */
  async release(stagingState: StagingState, context: CallContext): Promise<void> {
    const { volumeId, intent: { stagingPath } } = stagingState;
    if (!this.mayBe(stagingState)) return;
    if (await isAnyMounted(this.#deps, targetsOf(stagingState))) {
      this.named(volumeId);
      return;
    }
    try {
      await unstageVolume(this.#deps, this.#fencing, { volumeId, stagingPath }, context);
    } catch (error) {
      // A process has it open, or its target is away. The next check tries again.
      if (!VolumeError.is(error, "in-use") && !VolumeError.is(error, "unavailable")) throw error;
      return;
    }
    this.#deps.notes?.warn("released an unused volume that the kubelet has forgotten", {
      volumeId,
      nqn: stagingState.intent.nqn,
    });
  }
}
