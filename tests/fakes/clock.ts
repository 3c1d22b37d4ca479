import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/volume/ports/system.ts";

interface Waiting {
  readonly at: number;
  readonly order: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it. */
export class FakeClock implements Clock {
  #now: number;
  #order = 0;
  #waiting: Waiting[] = [];

  constructor(now = Date.UTC(2026, 0, 1)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonicMs(): number {
    return this.#now;
  }

  timer(ms: number, callback: () => void): () => void {
    const waiting = { at: this.#now + Math.max(0, ms), order: this.#order++, wake: callback };
    this.#waiting.push(waiting);
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = this.timer(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** How many timers and sleepers wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Advances time, wakes due waiters in order, and lets promises settle between wakes. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await setImmediate();
      const next = this.#waiting.toSorted((a, b) => a.at - b.at || a.order - b.order)[0];
      if (next === undefined || next.at > end) break;
      this.#waiting = this.#waiting.filter((other) => other !== next);
      this.#now = Math.max(this.#now, next.at);
      next.wake();
    }
    this.#now = end;
    await setImmediate();
  }
}
