import type { FileView, StoredVolume } from "../../volume/model/inventory.ts";
import { parseComment } from "../../volume/model/record.ts";

/** How many volumes are remembered, those changed last: a few megabytes. */
const maxVolumes = 4096;

/**
 * Volumes as this process has read them back after its last change of them, so that the next change need not read first. What is
 * remembered is never believed: it is only what the router compares the whole comment with.
 *
 * It remembers nothing when another controller may change volumes at the same time: it would mostly be wrong.
 */
export class KnownVolumes {
  readonly #alone: boolean;
  /** By id, the one changed last at the end. */
  readonly #volumes = new Map<string, StoredVolume>();
  /** Those whose image is, or must be, larger than their disk: the router forgot that they had grown. */
  readonly #outgrown = new Set<string>();
  /** The largest size in bytes that this process has read back of each, by id: a disk that is smaller has lost a growth. */
  readonly #sizes = new Map<string, bigint>();
  /** The latest epochs that the cluster knew, by id: each for the comment that it was asked for, or that was written since. */
  readonly #latest = new Map<string, { readonly comment: string; readonly counter: number }>();

  /** @param alone whether no other controller changes volumes of this router while this one does */
  constructor(alone: boolean) {
    this.#alone = alone;
  }

  /** Notes of a volume that was read whether its image is larger than its disk: then only a read is to be concluded from. */
  noteImage({ id, imagePath, sizeBytes }: StoredVolume, { files }: Pick<FileView, "files">): void {
    const image = files.find(({ path }) => path === imagePath);
    if (image === undefined) return;
    if (image.sizeBytes > sizeBytes) return void this.#outgrown.add(id);
    this.#outgrown.delete(id);
    if (this.#alone) setLast(this.#sizes, id, sizeBytes);
  }

  /**
   * Remembers a volume as it was read back. One without a whole record, or that cannot be read, is left out.
   *
   * @param before the comment that this process has changed
   */
  remember(stored: StoredVolume, before?: string): void {
    const latest = this.#latest.get(stored.id);
    if (before !== undefined && latest?.comment === before) this.noteLatestEpoch(stored, latest.counter);
    this.#volumes.delete(stored.id);
    const largest = this.#sizes.get(stored.id) ?? 0n;
    if (stored.sizeBytes < largest) this.#outgrown.add(stored.id);
    else if (this.#alone) setLast(this.#sizes, stored.id, stored.sizeBytes);
    if (!this.#alone || stored.unreadable !== undefined || this.#outgrown.has(stored.id)) return;
    if (parseComment(stored.comment).state === "record") setLast(this.#volumes, stored.id, stored);
  }

  /** Notes the counter of the latest epoch that the cluster knows of a volume with that comment. */
  noteLatestEpoch({ id, comment }: Pick<StoredVolume, "id" | "comment">, counter: number): void {
    if (this.#alone) setLast(this.#latest, id, { comment, counter });
  }

  /**
   * What was noted of that comment, or of the one that this process has made it of: nobody else gives epochs. Undefined for any
   * other, such as one that a router has brought back.
   */
  latestEpoch({ id, comment }: Pick<StoredVolume, "id" | "comment">): number | undefined {
    const latest = this.#latest.get(id);
    return latest?.comment === comment ? latest.counter : undefined;
  }

  /** The volume as it was after the last change; undefined when that is not known. */
  get(id: string): StoredVolume | undefined {
    return this.#volumes.get(id);
  }

  /** Forgets a volume: it is about to be changed. */
  forget(id: string): void {
    this.#volumes.delete(id);
  }

  /** Forgets all of a volume that is deleted: another one of its name may be smaller. */
  forgetDeleted(id: string): void {
    this.forget(id);
    this.#outgrown.delete(id);
    this.#sizes.delete(id);
    this.#latest.delete(id);
  }

  /** Forgets all: another controller may have led meanwhile. */
  forgetAll(): void {
    this.#volumes.clear();
    this.#outgrown.clear();
    this.#sizes.clear();
    this.#latest.clear();
  }
}

/** Sets an entry at the end of a map, which drops the eldest of too many. */
function setLast<Value>(map: Map<string, Value>, id: string, value: Value): void {
  map.delete(id);
  map.set(id, value);
  if (map.size <= maxVolumes) return;
  for (const eldest of map.keys()) return void map.delete(eldest);
}
