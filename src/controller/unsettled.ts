import type { Clock } from "../volume/ports.ts";
import { RecentRecords } from "./recent.ts";

/**
 * The changes that this process has sent and does not know the end of: their call was cancelled, or the answer was
 * lost. The router may still run them, as long as the volume has the comment that they expect. Whoever answers OK
 * without changing that comment would be made a liar, so it is to be rewritten first.
 *
 * A snapshot has no comment: for it the path of its image stands there, and nobody answers OK until it is too late for
 * the removal that was sent.
 */
export class UnsettledChanges {
  readonly #records: RecentRecords;

  constructor(clock: Clock) {
    this.#records = new RecentRecords(clock);
  }

  /** Remembers that a change of the volume with that comment may still come. */
  remember(id: string, comment: string): void {
    this.#records.note(id, comment);
  }

  /** Whether a change that expects that comment may still come. */
  mayStillCome(id: string, comment: string): boolean {
    return this.#records.has(id, comment);
  }
}
