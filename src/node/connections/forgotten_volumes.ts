import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StagingState } from "../../volume/model/staging_state.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { isAnyMounted } from "../mount_table.ts";
import { unstageVolume } from "../stage/unstage.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * How long a kubelet that has registered this driver may take to ask for what it uses, in milliseconds: it tries a mount
 * again after two minutes at most.
 */
const settleMs = 10 * 60_000;

/**
 * Releases what a kubelet has forgotten over a restart. One that is killed between NodeUnpublish and NodeUnstage finds no pod
 * of the volume when it starts again, and never asks for NodeUnstage (kubernetes issues 101791, 121937): its connection would
 * stay.
 *
 * A volume is forgotten when no call has named it since the kubelet registered this driver, which every start of a kubelet
 * does, and none of its targets is mounted.
 */
export class ForgottenVolumes {
  readonly #deps: NodeDeps;
  readonly #fencing: Fencing;
  #registeredMs: number | undefined;
  /** Volumes that the kubelet knows of. */
  readonly #known = new Set<string>();

  constructor(deps: NodeDeps, fencing: Fencing) {
    this.#deps = deps;
    this.#fencing = fencing;
  }

  /** A kubelet has asked who this node is, as it does when it registers the driver. */
  registered(): void {
    this.#registeredMs = this.#deps.clock.monotonicMs();
    this.#known.clear();
  }

  /** A call names the volume. */
  named(volumeId: string): void {
    this.#known.add(volumeId);
  }

  /** Whether the kubelet has had its time, and does not know of the volume. */
  mayBe({ volumeId }: StagingState): boolean {
    const { clock } = this.#deps;
    return this.#registeredMs !== undefined && clock.monotonicMs() - this.#registeredMs >= settleMs &&
      !this.#known.has(volumeId);
  }

  /**
   * Releases the volume, whose lock is held, if it is forgotten and nobody uses it. It stays connected otherwise, and can be
   * staged again: what a mount that cannot be seen from here keeps is found out only once its own is gone.
   */
  async release(stagingState: StagingState, context: CallContext): Promise<void> {
    const { volumeId, stagingPath, published } = stagingState;
    if (!this.mayBe(stagingState)) return;
    if (await isAnyMounted(this.#deps, published.map(({ targetPath }) => targetPath))) {
      this.named(volumeId);
      return;
    }
    try {
      await unstageVolume(this.#deps, this.#fencing, { volumeId, stagingPath }, context);
    } catch (error) {
      // Somebody has it open, or its target is away: it may be otherwise at the next look.
      if (!VolumeError.is(error, "in-use") && !VolumeError.is(error, "unavailable")) throw error;
      return;
    }
    this.named(volumeId);
    this.#deps.notes?.warn("released an unused volume that the kubelet has forgotten", {
      volumeId,
      nqn: stagingState.nqn,
    });
  }
}
