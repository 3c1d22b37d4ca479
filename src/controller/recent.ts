import type { Clock } from "../volume/ports/system.ts";

/** How late a router may still carry out what it was sent, in milliseconds. */
export const latestMs = 10 * 60_000;

/** Records of volumes that something was noted about no longer ago than a router may be late. */
export class RecentRecords {
  readonly #clock: Clock;
  /** When each was noted, by volume id and comment, the earliest first. */
  readonly #notedMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes the volume with that comment, and forgets what is too long ago. */
  note(id: string, comment: string): void {
    const key = `${id} ${comment}`;
    const nowMs = this.#clock.monotonicMs();
    this.#notedMs.delete(key);
    for (const [other, notedMs] of this.#notedMs) {
      if (nowMs - notedMs < latestMs) break;
      this.#notedMs.delete(other);
    }
    this.#notedMs.set(key, nowMs);
  }

  /** Whether the volume with that comment was noted lately. */
  has(id: string, comment: string): boolean {
    return this.ageMs(id, comment) < latestMs;
  }

  /** How long ago the volume with that comment was noted, in milliseconds; Infinity when it was not, or is forgotten. */
  ageMs(id: string, comment: string): number {
    const notedMs = this.#notedMs.get(`${id} ${comment}`);
    return notedMs === undefined ? Infinity : this.#clock.monotonicMs() - notedMs;
  }
}
