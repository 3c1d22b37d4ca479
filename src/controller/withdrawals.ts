import type { Clock } from "../volume/ports.ts";
import { latestMs, RecentRecords } from "./recent.ts";

/**
 * The withdrawals that this process has read back in time. Of any other one only the time is known at which it was
 * sent, and the router may have carried it out much later.
 */
export class ConfirmedWithdrawals {
  readonly #clock: Clock;
  readonly #records: RecentRecords;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#records = new RecentRecords(clock);
  }

  /** Remembers that the export was off when `comment` was read back, no later than its recorded time. */
  confirm(id: string, comment: string): void {
    this.#records.note(id, comment);
  }

  /** How long ago that was confirmed, in milliseconds, whatever became of the clock; Infinity when it was not. */
  ageMs(id: string, comment: string): number {
    return this.#records.ageMs(id, comment);
  }

  /** Whether the export may really have gone off later than at the time recorded in `comment`. */
  isDoubtful(id: string, comment: string, withdrawnAtMs: number): boolean {
    const recent = Math.abs(this.#clock.now() - withdrawnAtMs) < latestMs;
    return recent && !this.#records.has(id, comment);
  }
}
