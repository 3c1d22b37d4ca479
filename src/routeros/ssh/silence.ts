import type { Clock } from "../../volume/ports/system.ts";

/**
 * Measures for how long commands have waited without an answer to any of them, and reports it when that reaches a
 * limit. The waits of commands that their callers abandoned count too, because callers may have less time than the
 * limit. The time between commands does not count.
 */
export class SilenceWatch {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onSilent: () => void;
  #running = 0;
  #sinceMs = 0;
  /** The wait without an answer before `sinceMs`, since the last answer. */
  #waitedMs = 0;
  #cancelTimer = () => {};

  /** @param limitMs milliseconds of waiting after which `onSilent` is called, and again after as many more */
  constructor(clock: Clock, limitMs: number, onSilent: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onSilent = onSilent;
  }

  /** Notes that a command was sent. */
  sent(): void {
    if (this.#running++ === 0) this.#watch();
  }

  /** Notes that a command was not answered: its channel was given up, or the connection was lost. */
  gaveUp(): void {
    this.#running--;
    this.#waitedMs += this.#clock.monotonicMs() - this.#sinceMs;
    this.#watch();
  }

  /** Notes that a command was answered: one that counts (see `sent()`) or another one. */
  answered(counts: boolean): void {
    if (counts) this.#running--;
    this.#waitedMs = 0;
    this.#watch();
  }

  #watch(): void {
    this.#cancelTimer();
    this.#cancelTimer = () => {};
    this.#sinceMs = this.#clock.monotonicMs();
    if (this.#running === 0) return;
    this.#cancelTimer = this.#clock.timer(Math.max(0, this.#limitMs - this.#waitedMs), () => {
      this.#waitedMs = 0;
      this.#watch();
      this.#onSilent();
    });
  }
}
