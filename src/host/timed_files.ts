import { limitSignal } from "../async/deadline.ts";
import { KeyedQueue } from "../async/keyed_queue.ts";
import { Semaphore } from "../async/semaphore.ts";
import { VolumeError } from "../volume/errors.ts";
import type { Clock } from "../volume/ports/system.ts";

/** An operation on a file of this node's own that takes longer than this waits for something dead. */
const timeoutMs = 20_000;
/** How long a caller waits for a thread; shorter, so that it is refused before its operation is given up. */
const queueMs = 10_000;

/** Fewer than the runtime's 32 threads, so that its own work always finds one. */
const maxThreads = 16;

/** The work of a runtime thread cannot be cancelled. */
const never = new AbortController().signal;

/**
 * File operations of the runtime, each of which holds one of its threads to the end. One operation runs at a time on a
 * path, none on a path where one hangs, and never so many that the threads run out.
 */
export class TimedFiles {
  readonly #clock: Clock;
  readonly #queue: KeyedQueue;
  readonly #threads: Semaphore;

  /** @param onHang is called for every operation that was given up and goes on */
  constructor(
    clock: Clock,
    { threads = maxThreads, onHang }: { readonly threads?: number; readonly onHang?: () => void } = {},
  ) {
    this.#clock = clock;
    this.#threads = new Semaphore(threads);
    this.#queue = new KeyedQueue(clock, onHang);
  }

  /** Operations that were given up and go on, each holding a thread. */
  get hanging(): number {
    return this.#queue.hanging;
  }

  /**
   * Runs an operation on a file or folder.
   *
   * @throws {VolumeError} deadline when it takes too long; unavailable when an earlier one on the path hangs, or too
   * many on other paths
   */
  async run<T>(path: string, operation: () => Promise<T>): Promise<T> {
    return await this.#queue.run(`a file operation on ${path}`, { signal: never, timeoutMs }, () => ({
      result: this.#onThread(path, operation),
      giveUp: () => Promise.resolve(),
    }));
  }

  async #onThread<T>(path: string, operation: () => Promise<T>): Promise<T> {
    await this.#takeThread(path);
    try {
      return await operation();
    } finally {
      this.#threads.release();
    }
  }

  /** An operation that was not begun in time is not begun later, because its caller has given up. */
  async #takeThread(path: string): Promise<void> {
    using limited = limitSignal(this.#clock, never, queueMs);
    try {
      await this.#threads.acquire(limited.signal);
    } catch (cause) {
      throw new VolumeError("unavailable", `Cannot use ${path} because too many file operations hang`, {
        cause,
      });
    }
  }
}
