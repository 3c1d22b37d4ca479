import type { CallContext, Clock } from "../../volume/ports/ports.ts";
import { duringCall } from "../call.ts";

/** Lets only so many at once do something, in the order in which they came. */
export class AtMost {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(most: number) {
    this.#free = most;
  }

  /**
   * Does it when it is its turn.
   *
   * @throws {VolumeError} deadline or cancelled when the call ends before that; whatever `work` rejects with
   */
  async take<T>(context: CallContext, clock: Clock, work: () => Promise<T>): Promise<T> {
    await duringCall(this.#turn(), context, clock, () => this.#next());
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #next(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
