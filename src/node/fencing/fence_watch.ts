import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { FenceResult } from "../../volume/rules/fence.ts";
import type { CallContext, Random } from "../../volume/ports/system.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { withMissed } from "../../volume/model/staging/here.ts";
import { type Fencing, isSameMemory, memoryOf } from "./fencing.ts";
import type { OfferedReads } from "./offered_reads.ts";
import { RecentConnections } from "../connections/recent_connections.ts";
import type { ForgottenVolumes } from "../connections/forgotten_volumes.ts";
import { OrphanedConnections } from "../connections/orphaned_connections.ts";
import { tearDown } from "../connections/teardown.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeDeps, VolumeLock } from "../deps.ts";

/** How long the check of one volume may take. */
const volumeMs = 60_000;
/** How many volumes are checked at once. */
const atOnce = 4;
/** By how much an interval may be shorter or longer, so that nodes do not all ask at the same time. */
const jitter = 0.1;

/** What the volumes of one check share. */
interface CheckReads {
  readonly offered: OfferedReads;
  readonly connections: RecentConnections;
}

/** Options of {@linkcode FenceWatch}. */
export interface FenceWatchOptions {
  readonly deps: NodeDeps;
  readonly fencing: Fencing;
  /** Volumes that the kubelet may have forgotten. @default {none} */
  readonly forgotten?: ForgottenVolumes;
  /** The locks of the calls that change volumes. */
  readonly lock: VolumeLock;
  readonly random: Random;
  /** From the end of one check to the beginning of the next. */
  readonly intervalMs: number;
}

/**
 * Checks every staged volume regularly, from the start on, and takes down fenced ones: it disconnects the volume, and
 * unmounts its staging path once the volume is not published.
 *
 * A published volume stays mounted until the kubelet unpublishes it. The workload has its own copy of that mount, so
 * unmounting would not help it. It would even harm: whoever opens the folder afterwards would find, and write to, the
 * node's own disk.
 */
export class FenceWatch {
  readonly #options: FenceWatchOptions;
  readonly #orphans: OrphanedConnections;
  readonly #stop = new AbortController();
  readonly #working = new Set<string>();
  readonly #reported = new Map<string, string>();
  #running: Promise<void> = Promise.resolve();

  constructor(options: FenceWatchOptions) {
    this.#options = options;
    this.#orphans = new OrphanedConnections(options.deps, options.lock);
  }

  /** Starts checking, and returns at once. */
  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when no check is running. */
  async stop(): Promise<void> {
    this.#stop.abort(new VolumeError("cancelled", "The driver stops"));
    await this.#running;
  }

  /** Checks everything once. It never fails: a failure is logged, and the next check tries again. */
  async check(): Promise<void> {
    const { deps, fencing } = this.#options;
    await this.#noting("the node's state", async () => {
      const staged = await this.#options.deps.stagingStore.all();
      const reads = { offered: fencing.newReads(), connections: new RecentConnections(deps) };
      const queue = [...staged];
      const worker = async () => {
        for (let stagingState = queue.shift(); stagingState !== undefined; stagingState = queue.shift()) {
          await this.#readAt(stagingState, reads);
        }
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      const connected = await this.#bounded("all connections", (context) => this.#orphans.check(context));
      this.#forgetOthers(staged, connected ?? []);
    });
  }

  async #run(): Promise<void> {
    const { deps, random, intervalMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.check();
      const pauseMs = intervalMs * (1 - jitter + 2 * jitter * random.fraction());
      await deps.clock.sleep(pauseMs, signal).catch(() => {
        // `stop()` was called.
      });
    }
  }

  async #readAt(stagingState: StagingState, reads: CheckReads): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const { volumeId } = stagingState;
    const { forgotten } = this.#options;
    await this.#noting(volumeId, async () => {
      await this.#bounded(volumeId, async (context) => {
        await this.#decide(stagingState, reads, context);
        if (forgotten?.mayBe(stagingState) !== true) return;
        await this.#locked(stagingState, (current) => forgotten.release(current, context));
      });
    });
  }

  /** Skips work that still hangs in the kernel since an earlier check, so that hung work does not pile up. */
  async #bounded<T>(of: string, work: (context: CallContext) => Promise<T>): Promise<T | undefined> {
    if (this.#working.has(of)) return undefined;
    const whole = { requestId: `fence-${of}`, signal: this.#stop.signal };
    const { clock } = this.#options.deps;
    return await withDeadline(clock, whole, volumeMs, `look at ${of}`, async (context) => {
      this.#working.add(of);
      try {
        return await work(context);
      } finally {
        this.#working.delete(of);
      }
    });
  }

  async #decide(stagingState: StagingState, reads: CheckReads, context: CallContext): Promise<void> {
    const { volumeId, intent: { nqn } } = stagingState;
    const subject = { volumeId, nqn, stagingState };
    const seen = await reads.connections.to(nqn);
    const result = await this.#options.fencing.judge({ ...subject, seen }, reads.offered, context);
    this.#report(stagingState, result);
    if (result.state === "fenced") {
      const isDone = await this.#locked(
        stagingState,
        (current) => this.#takeDown(current, result.why, context),
      );
      // A tool of the call that holds the lock may hang until the connection ends. An unstage takes down the rest.
      if (!isDone) await this.#options.fencing.forceDisconnect(subject, result.why, context);
    } else if (!isSameMemory(memoryOf(result), stagingState.here.missed)) {
      await this.#locked(
        stagingState,
        (current) =>
          this.#options.deps.stagingStore.write({
            ...current,
            here: withMissed(current.here, memoryOf(result)),
          }),
      );
    }
  }

  /** Returns false, and does nothing, while a call changes the volume. The next check sees the result of that call. */
  async #locked(
    stagingState: StagingState,
    change: (current: StagingState) => Promise<unknown>,
  ): Promise<boolean> {
    const release = this.#options.lock.tryTake([stagingState.volumeId, stagingState.intent.stagingPath]);
    if (release === undefined) return false;
    try {
      const current = await this.#options.deps.stagingStore.find(stagingState.volumeId);
      if (current?.intent.nqn === stagingState.intent.nqn) await change(current);
      return true;
    } finally {
      release();
    }
  }

  async #takeDown(stagingState: StagingState, why: string, context: CallContext): Promise<void> {
    const { deps, fencing } = this.#options;
    const { volumeId, intent: { nqn } } = stagingState;
    if (!await fencing.forceDisconnect({ volumeId, nqn, stagingState }, why, context)) return;
    try {
      await tearDown(
        deps,
        { volumeId, nqns: [nqn], stagingPaths: [stagingState.intent.stagingPath], stagingState },
        context,
      );
    } catch (error) {
      if (!VolumeError.is(error, "in-use")) throw error;
      deps.notes?.info("a fenced volume stays mounted until it is unpublished", {
        volumeId,
        reason: error.message,
      });
    }
  }

  /** Logs one line for each change, not for each check. */
  #report({ volumeId, intent: { nqn } }: StagingState, result: FenceResult): void {
    const { notes } = this.#options.deps;
    const healthy = result.state === "live" || result.state === "gone";
    // Logs once that the volume is missing, not for how long.
    const now = healthy ? undefined : `${result.state} ${result.state === "undecided" ? result.why : ""}`;
    const before = this.#reported.get(volumeId);
    if (now === before) return;
    if (now === undefined) this.#reported.delete(volumeId);
    else this.#reported.set(volumeId, now);
    if (healthy) notes?.info(`the connection of a volume is ${result.state}`, { volumeId, nqn });
    else if (result.state === "fenced") {
      notes?.warn("a volume is fenced", { volumeId, nqn, why: result.why });
    } else {notes?.warn("the connection of a volume is down; the driver leaves it", {
        volumeId,
        nqn,
        why: result.why,
      });}
  }

  async #noting(what: string, work: () => Promise<void>): Promise<void> {
    const key = `failed ${what}`;
    try {
      await work();
      this.#reported.delete(key);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const reason = messageOf(error);
      if (this.#reported.get(key) === reason) return;
      this.#reported.set(key, reason);
      this.#options.deps.notes?.warn("cannot check for fenced volumes", { of: what, reason });
    }
  }

  #forgetOthers(staged: readonly StagingState[], connected: readonly string[]): void {
    this.#options.fencing.keepOnly(
      new Set([...connected, ...staged.map((stagingState) => stagingState.intent.nqn)]),
    );
    const ids = new Set(staged.map((stagingState) => stagingState.volumeId));
    for (const key of this.#reported.keys()) {
      if (!ids.has(key) && !key.startsWith("failed ")) this.#reported.delete(key);
    }
  }
}
