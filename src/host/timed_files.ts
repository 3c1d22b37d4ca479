import { VolumeError } from "../volume/errors.ts";
import type { Clock } from "../volume/ports/ports.ts";
import { Turns } from "./keyed_queue.ts";

/** An operation on a file of this node's own that takes longer than this waits for something dead. */
const timeoutMs = 20_000;
/** How long one waits for a thread; shorter, so that nobody is given up before he is refused. */
const queueMs = 10_000;

/** Of the runtime's 32 threads, so that what it does itself always finds one. */
const mostThreads = 16;

/** Nobody can cancel what a thread of the runtime does. */
const never = new AbortController().signal;

/**
 * File operations of the runtime, each of which holds one of its threads to the end: one at a time on a path, none on a
 * path where one hangs, and never so many that the threads run out.
 */
export class PatientFiles {
  readonly #clock: Clock;
  readonly #turns: Turns;
  readonly #queue: (() => void)[] = [];
  #free: number;

  /** @param onHang hears of every operation that was given up and goes on */
  constructor(
    clock: Clock,
    { threads = mostThreads, onHang }: { readonly threads?: number; readonly onHang?: () => void } = {},
  ) {
    this.#clock = clock;
    this.#free = threads;
    this.#turns = new Turns(clock, onHang);
  }

  /** Operations that were given up and go on, each holding a thread. */
  get hanging(): number {
    return this.#turns.hanging;
  }

  /**
   * Runs an operation on a file or folder.
   *
   * @throws {VolumeError} deadline when it takes too long; unavailable when an earlier one on the path hangs, or too
   * many on other paths
   */
  async run<T>(path: string, operation: () => Promise<T>): Promise<T> {
    return await this.#turns.run(`a file operation on ${path}`, { signal: never, timeoutMs }, () => ({
      result: this.#onThread(path, operation),
      giveUp: () => Promise.resolve(),
    }));
  }

  async #onThread<T>(path: string, operation: () => Promise<T>): Promise<T> {
    await this.#takeThread(path);
    try {
      return await operation();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }

  /** What was not begun in time is not begun later, when its caller has given up. */
  async #takeThread(path: string): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const { promise: handedOver, resolve, reject } = Promise.withResolvers<void>();
    this.#queue.push(resolve);
    const cancelTimer = this.#clock.timer(queueMs, () => {
      const at = this.#queue.indexOf(resolve);
      if (at < 0) return;
      this.#queue.splice(at, 1);
      reject(new VolumeError("unavailable", `Cannot use ${path} as too many file operations hang`));
    });
    await handedOver.finally(cancelTimer);
  }
}
