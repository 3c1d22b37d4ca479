import type { CallContext, Clock } from "../volume/ports/system.ts";
import { duringCall } from "./deadline.ts";

/** Limits how many callers do something at once; the others wait in the order in which they came. */
export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(max: number) {
    this.#free = max;
  }

  /**
   * Runs `work` when there is a free place.
   *
   * @throws {VolumeError} deadline or cancelled when the call ends before that; whatever `work` rejects with
   */
  async run<T>(context: CallContext, clock: Clock, work: () => Promise<T>): Promise<T> {
    await this.acquire(context, clock);
    try {
      return await work();
    } finally {
      this.release();
    }
  }

  /**
   * Takes a place when there is a free one; {@linkcode Semaphore.release} gives it back.
   *
   * @throws {VolumeError} deadline or cancelled when the call ends before that
   */
  async acquire(context: CallContext, clock: Clock): Promise<void> {
    await duringCall(this.#turn(), context, clock, () => this.release());
  }

  /** Gives a place back. */
  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }

  #turn(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
