import { duringCall } from "./waiting.ts";

/** The order of the callers that wait: a `last` one goes when no other waits. */
export type Turn = "first-come" | "last";

/** Limits how many callers do something at once; the others wait in the order in which they came. */
export class Semaphore {
  readonly #waiting: Readonly<Record<Turn, (() => void)[]>> = { "first-come": [], last: [] };
  #free: number;

  constructor(max: number) {
    this.#free = max;
  }

  /**
   * Runs `work` when there is a free place.
   *
   * @throws {VolumeError} deadline or cancelled when the signal is aborted before that; whatever `work` rejects with
   */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.acquire(signal);
    try {
      return await work();
    } finally {
      this.release();
    }
  }

  /**
   * Takes a place when there is a free one; {@linkcode Semaphore.release} gives it back.
   *
   * @throws {VolumeError} deadline or cancelled when the signal is aborted before that
   */
  async acquire(signal: AbortSignal, turn: Turn = "first-come"): Promise<void> {
    await duringCall(this.#turn(turn), signal, () => this.release());
  }

  /** Gives a place back. */
  release(): void {
    const next = this.#waiting["first-come"].shift() ?? this.#waiting.last.shift();
    if (next === undefined) this.#free++;
    else next();
  }

  #turn(turn: Turn): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting[turn].push(resolve));
  }
}
