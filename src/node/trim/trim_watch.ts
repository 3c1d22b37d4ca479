import { runLimited } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import type { TrimOutcome } from "../../volume/ports/node_events.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext, Random } from "../../volume/ports/system.ts";
import { proveStaged } from "../connections/device.ts";
import type { NodeDeps, VolumeLock } from "../deps.ts";
import { nodeVolumeHealth } from "../health/volume_health.ts";
import { readChain } from "../chain/chain.ts";
import { mountsAt } from "../mount_table.ts";

/** How long the trim and the health check of one volume may take: longer than a trim alone may. */
const volumeMs = 630_000;
/** By how much an interval may be shorter or longer, so that nodes do not trim at the same time. */
const jitter = 0.1;

/** Options of {@linkcode TrimWatch}. */
export interface TrimWatchOptions {
  readonly deps: NodeDeps;
  /** The locks of the calls that change volumes. */
  readonly lock: VolumeLock;
  readonly random: Random;
  /** From the end of one round to the beginning of the next, in milliseconds; 0 for never. */
  readonly intervalMs: number;
}

/**
 * Lets the file systems of this node's volumes report their unused space to the router, one volume at a time. It trims
 * only a healthy, writable volume, and only while no call changes it; a call that comes meanwhile ends the trim.
 */
export class TrimWatch {
  readonly #options: TrimWatchOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: TrimWatchOptions) {
    this.#options = options;
  }

  /** Starts the rounds, if an interval is set, and returns at once. */
  start(): void {
    if (this.#options.intervalMs > 0) this.#running = this.#run();
  }

  /** Resolves when no trim is running. */
  async stop(): Promise<void> {
    this.#stop.abort(new VolumeError("cancelled", "The driver stops"));
    await this.#running;
  }

  /**
   * Runs one round over all volumes. It never fails: a failure is logged, and the next round tries the volume again.
   */
  async check(): Promise<void> {
    try {
      for (const stagingState of await this.#options.deps.stagingStore.all()) {
        if (this.#stop.signal.aborted) return;
        if (isTrimmable(stagingState)) await this.#trim(stagingState);
      }
    } catch (error) {
      this.#options.deps.notes?.warn("cannot look for volumes to trim", { reason: messageOf(error) });
    }
  }

  /** Waits a random part of the interval first, so that nodes that start together trim at different times. */
  async #run(): Promise<void> {
    const { deps, random, intervalMs } = this.#options;
    const { signal } = this.#stop;
    const pause = (ms: number) =>
      deps.clock.sleep(ms, signal).catch(() => {
        // `stop()` was called.
      });
    await pause(intervalMs * random.fraction());
    while (!signal.aborted) {
      await this.check();
      await pause(intervalMs * (1 - jitter + 2 * jitter * random.fraction()));
    }
  }

  async #trim({ volumeId, intent: { stagingPath } }: StagingState): Promise<void> {
    const { deps, lock } = this.#options;
    const { clock, notes } = deps;
    const wanted = new AbortController();
    const onWanted = () => wanted.abort(new VolumeError("cancelled", "A call changes the volume"));
    const release = lock.tryTake([volumeId, stagingPath], onWanted);
    if (release === undefined) return;
    const signal = AbortSignal.any([this.#stop.signal, wanted.signal]);
    const limits = { name: `trim-${volumeId}`, timeoutMs: volumeMs, signal };
    try {
      await runLimited(clock, limits, (context) => this.#trimLocked(volumeId, context));
    } catch (error) {
      if (signal.aborted) {
        notes?.info("a trim was ended", { volumeId, reason: messageOf(signal.reason) });
        return;
      }
      this.#report("failed");
      notes?.warn("cannot trim the file system of a volume", { volumeId, reason: messageOf(error) });
    } finally {
      release();
    }
  }

  async #trimLocked(volumeId: string, context: CallContext): Promise<void> {
    const { deps } = this.#options;
    const mounted = await this.#mountedAs(volumeId, context);
    if (mounted === undefined) return;
    const beganMs = deps.clock.monotonicMs();
    const bytes = await deps.filesystems.trim(mounted.device, mounted.mountPoint, context);
    if (bytes === undefined) {
      this.#report("unsupported");
      deps.notes?.info("a volume cannot be trimmed because its device takes no discards", { volumeId });
      return;
    }
    this.#report("ok", bytes);
    const ms = Math.round(deps.clock.monotonicMs() - beganMs);
    deps.notes?.info("trimmed the file system of a volume", { volumeId, bytes: String(bytes), ms });
  }

  /** The device of a volume that may be trimmed right now, and where it is mounted; undefined for any other volume. */
  async #mountedAs(
    volumeId: string,
    context: CallContext,
  ): Promise<{ readonly device: ProvenDevice; readonly mountPoint: string } | undefined> {
    const { deps } = this.#options;
    const stagingState = await this.#options.deps.stagingStore.find(volumeId);
    if (stagingState === undefined || !isTrimmable(stagingState)) return undefined;
    const { problems } = await nodeVolumeHealth(deps, volumeId, context);
    const { used: found } = await readChain(deps, stagingState.intent.nqn, context);
    if (problems.length > 0 || found === undefined) {
      const reason = problems[0]?.reason ?? "DeviceMissing";
      deps.notes?.info("a volume is not trimmed because it is not healthy", { volumeId, reason });
      return undefined;
    }
    const device = await proveStaged(deps, found, stagingState, context);
    const mountPoint = await deps.paths.mountPoint(stagingState.intent.stagingPath);
    const mount = mountsAt(await deps.mounts.table(), mountPoint).at(-1);
    if (mount?.deviceNumber !== device.deviceNumber) return undefined;
    const isReadOnly = [...mount.mountOptions, ...mount.superOptions].includes("ro");
    return isReadOnly ? undefined : { device, mountPoint };
  }

  #report(outcome: TrimOutcome, bytes = 0n): void {
    const { clock, events } = this.#options.deps;
    events.occurred({ kind: "trimmed", outcome, bytes, atMs: clock.now() });
  }
}

/** Whether its state lets a volume be trimmed. A raw block volume belongs to its workload. */
function isTrimmable({ intent: { kind, readOnly }, here: { staged } }: StagingState): boolean {
  return kind !== "block" && !readOnly && staged;
}
