import type { Clock, Random } from "../../volume/ports/system.ts";
import type { BreakerEvent } from "./observer.ts";

/** Bounds of an exponential backoff. */
export interface BackoffOptions {
  /** The first delay in milliseconds, before jitter. */
  readonly firstMs: number;
  /** The longest delay in milliseconds. */
  readonly maxMs: number;
}

/**
 * The delay before the next attempt after `failures` in a row: doubling, with the upper half random, so that several
 * clients of one router do not connect in step. There is no delay without a failure.
 */
export function backoffMs(failures: number, random: Random, options: BackoffOptions): number {
  if (failures <= 0) return 0;
  const full = Math.min(options.maxMs, options.firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(full / 2 + random.fraction() * full / 2);
}

/** Options of {@linkcode CircuitBreaker}. */
export interface CircuitBreakerOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Delays between attempts. */
  readonly backoff: BackoffOptions;
  /** Failures in a row that open the breaker, at least 1. */
  readonly openAfter: number;
  /** Called for each change, and for each failure while the breaker is not closed. */
  readonly changed: (event: BreakerEvent) => void;
}

/**
 * Counts how often in a row the router could not be reached, and decides whether calls still wait for it.
 *
 * - **closed**: calls wait.
 * - **open**: too many failures in a row, or one that lasts (a wrong key, another host key). No call waits.
 * - **trying**: like open, while one request tests the router. Its success closes the breaker, its failure opens it for
 *   a longer delay.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #state: BreakerEvent["state"] = "closed";
  #failures = 0;
  #cause: string | undefined;
  #nextTryAtMs = 0;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  /** The state, see the class. */
  get state(): BreakerEvent["state"] {
    return this.#state;
  }

  /**
   * Why a call must not wait, as words that follow "because", with the time of the next attempt; for a breaker that is
   * not closed.
   */
  get reason(): string {
    const times = this.#failures === 1 ? "once" : `${this.#failures} times in a row`;
    const next = this.#state === "trying"
      ? "another try is under way"
      : `the next try is not before ${new Date(this.#nextTryAtMs).toISOString()}`;
    return `${this.#cause}; that failed ${times}, and ${next}`;
  }

  /** Records a failure; returns the milliseconds until the next attempt. */
  failed(cause: string, lasting: boolean): number {
    const { clock, random, backoff, openAfter } = this.#options;
    this.#failures++;
    this.#cause = cause;
    const delayMs = backoffMs(this.#failures, random, backoff);
    this.#nextTryAtMs = clock.now() + delayMs;
    if (lasting || this.#state !== "closed" || this.#failures >= openAfter) this.#enter("open");
    return delayMs;
  }

  /** Records that an attempt begins. */
  tries(): void {
    if (this.#state === "open") this.#enter("trying");
  }

  /** Records that the router answered. */
  succeeded(): void {
    this.#failures = 0;
    this.#cause = undefined;
    if (this.#state !== "closed") this.#enter("closed");
  }

  #enter(state: BreakerEvent["state"]): void {
    this.#state = state;
    this.#options.changed({
      state,
      cause: this.#cause,
      failures: this.#failures,
      nextTryAtMs: state === "open" ? this.#nextTryAtMs : undefined,
    });
  }
}
