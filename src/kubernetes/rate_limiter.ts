import type { Clock, Random } from "../volume/ports/system.ts";
import { ApiError } from "./api.ts";

/** The average rate, and how many steps may follow at once after a pause. */
export interface RateLimits {
  readonly perSecond: number;
  readonly burst: number;
}

/** Lets steps through at a limited rate, several at once after a pause. After a failure it waits, longer each time. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #stepMs: number;
  readonly #burst: number;
  /** When the steps so far would be done at the limited rate. */
  #paidMs = -Infinity;
  #blockedMs = -Infinity;
  #failures = 0;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }, limits: RateLimits) {
    this.#clock = clock;
    this.#random = random;
    this.#stepMs = 1_000 / limits.perSecond;
    this.#burst = limits.burst;
  }

  /** Waits for the turn of one step. */
  async turn(signal: AbortSignal): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    this.#paidMs = Math.max(this.#paidMs, nowMs - this.#burst * this.#stepMs) + this.#stepMs;
    const waitMs = Math.max(this.#paidMs, this.#blockedMs) - nowMs;
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
  }

  /** Whether a failure delays steps right now. */
  get isBlocked(): boolean {
    return this.#blockedMs > this.#clock.monotonicMs();
  }

  /** Notes that a step succeeded. */
  succeeded(): void {
    this.#failures = 0;
  }

  /**
   * Notes that a step failed. The wait is from 1 s to 10 s, doubled by each failure in a row and shortened at random by
   * at most a half, or as long as the server has asked for. A longer wait would only delay the recovery.
   */
  failed(error: unknown): void {
    if (this.isBlocked) return;
    this.#failures = Math.min(this.#failures + 1, 5);
    const fullMs = Math.min(10_000, 1_000 * 2 ** (this.#failures - 1));
    const askedMs = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
    const waitMs = Math.max(askedMs, fullMs * (1 - this.#random.fraction() / 2));
    this.#blockedMs = this.#clock.monotonicMs() + Math.min(waitMs, 300_000);
  }
}
