import type { Clock } from "../volume/ports.ts";

/** How late a router may still carry out what it was sent: after this the recorded time is right, or nothing came of it. */
const latestMs = 10 * 60_000;

/**
 * The withdrawals that this process has read back in time. Of any other one only the time is known at which it was
 * sent, and the router may have carried it out much later.
 */
export class ConfirmedWithdrawals {
  readonly #clock: Clock;
  /** When each was confirmed, by volume id and comment, the earliest first. */
  readonly #confirmedMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers that the export was off when `comment` was read back, no later than its recorded time. */
  confirm(id: string, comment: string): void {
    const nowMs = this.#clock.now();
    for (const [key, confirmedMs] of this.#confirmedMs) {
      if (nowMs - confirmedMs < latestMs) break;
      this.#confirmedMs.delete(key);
    }
    this.#confirmedMs.set(`${id} ${comment}`, nowMs);
  }

  /** Whether the time recorded in `comment` may be later than the export really went off. */
  isDoubtful(id: string, comment: string, withdrawnAtMs: number): boolean {
    const recent = Math.abs(this.#clock.now() - withdrawnAtMs) < latestMs;
    return recent && !this.#confirmedMs.has(`${id} ${comment}`);
  }
}
