import type { Clock } from "../../volume/ports/system.ts";

/**
 * The changes that this process has sent and does not know the end of: their call was cancelled, or the answer was
 * lost. The router may still run them, as long as the volume has the comment that they expect. Whoever answers OK
 * without changing that comment would be made a liar, so it is to be rewritten first.
 *
 * A snapshot has no comment: for it the path of its image stands there, and nobody answers OK until it is too late for
 * the removal that was sent, or that the controller before this one may have sent.
 */
export class ChangesInDoubt {
  readonly #clock: Clock;
  readonly #records: RecentRecords;
  /** Until when changes of an earlier controller may come. */
  #suspectUntilMs = -Infinity;
  /** The comments that this process has written since that began, by volume: nothing that was sent earlier expects them. */
  readonly #own = new Map<string, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#records = new RecentRecords(clock);
  }

  /**
   * Another controller had its place before this one, and only that one knows what it has sent: as long as a router may be late,
   * a change may still come for any volume whose comment this process has not written.
   */
  suspectOthers(): void {
    this.#own.clear();
    this.#suspectUntilMs = this.#clock.monotonicMs() + latestMs;
  }

  /** Remembers that this process has written that comment, or made the snapshot with that image. */
  wrote(id: string, comment: string): void {
    if (this.#suspects()) this.#own.set(id, comment);
    else this.#own.clear();
  }

  #suspects(): boolean {
    return this.#clock.monotonicMs() < this.#suspectUntilMs;
  }

  /** Remembers that a change of the volume with that comment may still come. */
  remember(id: string, comment: string): void {
    this.#records.note(id, comment);
  }

  /** Whether a change that expects that comment may still come. */
  mayStillApply(id: string, comment: string): boolean {
    return this.wasSent(id, comment) || this.othersMayStillApply(id, comment);
  }

  /** Whether a controller that led before may have sent one. */
  othersMayStillApply(id: string, comment: string): boolean {
    return this.#suspects() && this.#own.get(id) !== comment;
  }

  /** Whether this process itself has sent one, for a comment or the image of a snapshot, that may still come. */
  wasSent(id: string, comment: string): boolean {
    return this.#records.has(id, comment);
  }
}

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
