import type { Clock } from "../../src/volume/ports/system.ts";

interface Waiting {
  readonly atMs: number;
  readonly wake: () => void;
}

/** The least time that a waiter waits, in milliseconds: those who wait for no time, again and again, let time pass. */
const minMs = 1;

/**
 * A clock that moves only while everything waits for it, and then to the next waiter: minutes pass at once, and no load of
 * the machine is measured. For work in this process alone: it does not wait for sockets and files.
 */
export class SkippingClock implements Clock {
  #nowMs = Date.UTC(2026, 0, 1);
  #waiting: Waiting[] = [];
  #isTurning = false;

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  timer(ms: number, callback: () => void): () => void {
    const waiting = { atMs: this.#nowMs + Math.max(minMs, ms), wake: callback };
    this.#waiting.push(waiting);
    this.#turn();
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
    };
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(signal?.reason);
    const cancel = this.timer(ms, resolve);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** By its next turn, the event loop has let everything go on that does not wait for the clock. */
  #turn(): void {
    if (this.#isTurning || this.#waiting.length === 0) return;
    this.#isTurning = true;
    setImmediate(() => {
      this.#isTurning = false;
      this.#wakeNext();
      this.#turn();
    });
  }

  #wakeNext(): void {
    const next = this.#waiting.reduce<Waiting | undefined>(
      (first, other) => first === undefined || other.atMs < first.atMs ? other : first,
      undefined,
    );
    if (next === undefined) return;
    this.#waiting = this.#waiting.filter((other) => other !== next);
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.wake();
  }
}
