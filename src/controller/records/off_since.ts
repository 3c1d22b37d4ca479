import type { Clock } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";

/**
 * Since when this process has seen that exports are off, by a clock that nobody sets. What a record says of the time goes by
 * the clock of whoever wrote it, which may be any: a withdrawal that another process has made is as young as the first look at
 * it.
 */
export class ExportsOff {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly comment: string; readonly sinceMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers that the export was off when `comment`, which this process has written, was read back. */
  confirm(id: string, comment: string): void {
    this.#seen.set(id, { comment, sinceMs: this.#clock.monotonicMs() });
  }

  /**
   * Remembers that this process has rewritten the record `before` as `after`, and nothing of its withdrawal: the export has
   * been off for as long as before. Where `before` is not what was seen last, nothing is known of `after`.
   */
  rewrote(id: string, before: string, after: string): void {
    const seen = this.#seen.get(id);
    if (seen?.comment === before) this.#seen.set(id, { ...seen, comment: after });
  }

  /** How long ago the volume was first seen like this, with its export off, in milliseconds: 0 when that is now. */
  ageMs({ id, comment, exported }: Pick<StoredVolume, "id" | "comment" | "exported">): number {
    if (exported) this.#seen.delete(id);
    else if (this.#seen.get(id)?.comment !== comment) this.confirm(id, comment);
    const seen = this.#seen.get(id);
    return seen === undefined ? 0 : this.#clock.monotonicMs() - seen.sinceMs;
  }

  /** Looks at all volumes, and forgets those that there are no more. */
  check(volumes: readonly Pick<StoredVolume, "id" | "comment" | "exported">[]): void {
    const ids = new Set(volumes.map(({ id }) => id));
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id);
    for (const volume of volumes) this.ageMs(volume);
  }

  /** Forgets a volume, which is deleted. */
  forget(id: string): void {
    this.#seen.delete(id);
  }
}
