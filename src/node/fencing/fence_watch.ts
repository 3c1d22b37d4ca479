import { VolumeError } from "../../volume/errors.ts";
import type { FenceVerdict } from "../../volume/rules/fence.ts";
import type { CallContext, Random } from "../../volume/ports/system.ts";
import { type Stash, withMissed } from "../../volume/model/staging_state.ts";
import { type Fencing, isSameMemory, memoryOf } from "./fencing.ts";
import type { OfferedReads } from "./offered_reads.ts";
import { Stashes } from "../stage/staging_store.ts";
import { Strays } from "../connections/orphaned_connections.ts";
import { tearDown } from "../connections/teardown.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeWorld, VolumeLock } from "../deps.ts";

/** How long one volume may take in one look. */
const volumeMs = 60_000;
/** How many volumes are looked at at once. */
const atOnce = 4;
/** By how much an interval may be shorter or longer, so that nodes do not all ask at the same time. */
const jitter = 0.1;

/** Options of {@linkcode FenceWatch}. */
export interface FenceWatchOptions {
  readonly world: NodeWorld;
  readonly fencing: Fencing;
  /** The locks of the calls that change volumes. */
  readonly lock: VolumeLock;
  readonly random: Random;
  /** From the end of a look to the beginning of the next. */
  readonly intervalMs: number;
}

/**
 * Looks again and again, from the start on, at every volume that is staged here, and takes down what is fenced: cuts it
 * off, and unmounts it where it is staged once nothing is published.
 *
 * What is published stays mounted until the kubelet unpublishes it. The workload has its own copy of that mount, so
 * that unmounting would not help it; but whoever looked at the folder later would find, and write to, the node's disk.
 */
export class FenceWatch {
  readonly #options: FenceWatchOptions;
  readonly #stashes: Stashes;
  readonly #strays: Strays;
  readonly #stop = new AbortController();
  readonly #working = new Set<string>();
  readonly #told = new Map<string, string>();
  #running: Promise<void> = Promise.resolve();

  constructor(options: FenceWatchOptions) {
    this.#options = options;
    this.#stashes = new Stashes(options.world);
    this.#strays = new Strays(options.world, options.lock);
  }

  /** Begins to look, and returns at once. */
  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when no look runs any more. */
  async stop(): Promise<void> {
    this.#stop.abort(new VolumeError("cancelled", "The driver stops"));
    await this.#running;
  }

  /** One look at everything. It never fails: what it cannot find out is noted and looked at again. */
  async look(): Promise<void> {
    const { fencing } = this.#options;
    await this.#noting("the node's state", async () => {
      const stashes = await this.#stashes.all();
      const reads = fencing.newReads();
      const queue = [...stashes];
      const worker = async () => {
        for (let stash = queue.shift(); stash !== undefined; stash = queue.shift()) {
          await this.#lookAt(stash, reads);
        }
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      const connected = await this.#bounded("all connections", (context) => this.#strays.look(context));
      this.#forgetOthers(stashes, connected ?? []);
    });
  }

  async #run(): Promise<void> {
    const { world, random, intervalMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.look();
      const pauseMs = intervalMs * (1 - jitter + 2 * jitter * random.fraction());
      await world.clock.sleep(pauseMs, signal).catch(() => {
        // It was told to stop.
      });
    }
  }

  async #lookAt(stash: Stash, reads: OfferedReads): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const { volumeId } = stash;
    await this.#noting(
      volumeId,
      () => this.#bounded(volumeId, (context) => this.#decide(stash, reads, context)),
    );
  }

  /** What still hangs in the kernel since an earlier look is left out: nothing is piled up on it. */
  async #bounded<T>(of: string, work: (context: CallContext) => Promise<T>): Promise<T | undefined> {
    if (this.#working.has(of)) return undefined;
    const whole = { requestId: `fence-${of}`, signal: this.#stop.signal, deadlineMs: Infinity };
    const { clock } = this.#options.world;
    return await withDeadline(clock, whole, volumeMs, `look at ${of}`, async (context) => {
      this.#working.add(of);
      try {
        return await work(context);
      } finally {
        this.#working.delete(of);
      }
    });
  }

  async #decide(stash: Stash, reads: OfferedReads, context: CallContext): Promise<void> {
    const { volumeId, nqn } = stash;
    const subject = { volumeId, nqn, stash };
    const verdict = await this.#options.fencing.judge(subject, reads, context);
    this.#tell(stash, verdict);
    if (verdict.state === "fenced") {
      await this.#locked(stash, (current) => this.#takeDown(current, verdict.why, context));
    } else if (!isSameMemory(memoryOf(verdict), stash.missed)) {
      await this.#locked(stash, (current) => this.#stashes.write(withMissed(current, memoryOf(verdict))));
    }
  }

  /** Skipped while a call changes the volume; what that call makes of it is seen at the next look. */
  async #locked(stash: Stash, change: (current: Stash) => Promise<unknown>): Promise<void> {
    const release = this.#options.lock.tryTake([stash.volumeId, stash.stagingPath]);
    if (release === undefined) return;
    try {
      const current = await this.#stashes.find(stash.volumeId);
      if (current?.nqn === stash.nqn) await change(current);
    } finally {
      release();
    }
  }

  async #takeDown(stash: Stash, why: string, context: CallContext): Promise<void> {
    const { world, fencing } = this.#options;
    const { volumeId, nqn } = stash;
    if (!await fencing.cutOff({ volumeId, nqn, stash }, why, context)) return;
    try {
      await tearDown(world, { volumeId, nqns: [nqn], stagingPaths: [stash.stagingPath], stash }, context);
    } catch (error) {
      if (!VolumeError.is(error, "in-use")) throw error;
      world.notes?.info("a fenced volume stays mounted until it is unpublished", {
        volumeId,
        reason: error.message,
      });
    }
  }

  /** One line a change, not one a look. */
  #tell({ volumeId, nqn }: Stash, verdict: FenceVerdict): void {
    const { notes } = this.#options.world;
    const calm = verdict.state === "live" || verdict.state === "gone";
    // Whether it is missed is told once, not for how long.
    const now = calm ? undefined : `${verdict.state} ${verdict.state === "undecided" ? verdict.why : ""}`;
    const before = this.#told.get(volumeId);
    if (now === before) return;
    if (now === undefined) this.#told.delete(volumeId);
    else this.#told.set(volumeId, now);
    if (calm) notes?.info(`the connection of a volume is ${verdict.state}`, { volumeId, nqn });
    else if (verdict.state === "fenced") {
      notes?.warn("a volume is fenced", { volumeId, nqn, why: verdict.why });
    } else {notes?.warn("the connection of a volume is down; it stays as it is", {
        volumeId,
        nqn,
        why: verdict.why,
      });}
  }

  async #noting(what: string, work: () => Promise<void>): Promise<void> {
    const key = `failed ${what}`;
    try {
      await work();
      this.#told.delete(key);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      if (this.#told.get(key) === reason) return;
      this.#told.set(key, reason);
      this.#options.world.notes?.warn("cannot look for fenced volumes", { of: what, reason });
    }
  }

  #forgetOthers(stashes: readonly Stash[], connected: readonly string[]): void {
    this.#options.fencing.keepOnly(new Set([...connected, ...stashes.map((stash) => stash.nqn)]));
    const ids = new Set(stashes.map((stash) => stash.volumeId));
    for (const key of this.#told.keys()) {
      if (!ids.has(key) && !key.startsWith("failed ")) this.#told.delete(key);
    }
  }
}
