import type { Clock, Random } from "../volume/ports/system.ts";
import { ApiError } from "./api.ts";

/** How fast something may go on for long, and how far it may run ahead after a rest. */
export interface RateLimits {
  readonly perSecond: number;
  readonly burst: number;
}

/** Lets steps through at a limited rate, after a rest several at once; after a failure it waits, longer each time. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #stepMs: number;
  readonly #burst: number;
  /** When the steps that were let through would be done at the limited rate. */
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

  /** Whether a failure holds steps up right now. */
  get isBlocked(): boolean {
    return this.#blockedMs > this.#clock.monotonicMs();
  }

  /** A step went well. */
  succeeded(): void {
    this.#failures = 0;
  }

  /**
   * A step failed: from 1 s to 10 s, doubled by each failure in a row and shortened by chance by at most a half, or for as
   * long as the server has asked for. Longer would only be longer out of date once it is back.
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
