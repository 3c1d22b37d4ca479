import type { Clock } from "../volume/ports.ts";

/** How late a router may still carry out what it was sent. */
const latestMs = 10 * 60_000;

/**
 * The changes that this process has sent and does not know the end of: their call was cancelled, or the answer was
 * lost. The router may still run them, as long as the volume has the comment that they expect. Whoever answers OK
 * without changing that comment would be made a liar, so it is to be rewritten first.
 */
export class UnsettledChanges {
  readonly #clock: Clock;
  /** When each was last seen not to have run, by volume id and comment, the earliest first. */
  readonly #sinceMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers that a change of the volume with that comment may still come. */
  remember(id: string, comment: string): void {
    const key = `${id} ${comment}`;
    const nowMs = this.#clock.now();
    this.#sinceMs.delete(key);
    for (const [other, sinceMs] of this.#sinceMs) {
      if (nowMs - sinceMs < latestMs) break;
      this.#sinceMs.delete(other);
    }
    this.#sinceMs.set(key, nowMs);
  }

  /** Whether a change that expects that comment may still come. */
  mayStillCome(id: string, comment: string): boolean {
    const sinceMs = this.#sinceMs.get(`${id} ${comment}`);
    return sinceMs !== undefined && this.#clock.now() - sinceMs < latestMs;
  }
}
