import type { StoredVolume } from "../volume/model/inventory.ts";
import { parseComment } from "../volume/model/record.ts";

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

  /** @param alone whether no other controller changes volumes of this router while this one does */
  constructor(alone: boolean) {
    this.#alone = alone;
  }

  /** Remembers a volume as it was read back. One without a whole record is left out. */
  remember(stored: StoredVolume): void {
    this.#volumes.delete(stored.id);
    if (!this.#alone || parseComment(stored.comment).state !== "record") return;
    this.#volumes.set(stored.id, stored);
    if (this.#volumes.size <= maxVolumes) return;
    for (const eldest of this.#volumes.keys()) return void this.#volumes.delete(eldest);
  }

  /** The volume as it was after the last change; undefined when that is not known. */
  get(id: string): StoredVolume | undefined {
    return this.#volumes.get(id);
  }

  /** Forgets a volume: it is about to be changed, or is deleted. */
  forget(id: string): void {
    this.#volumes.delete(id);
  }

  /** Forgets all: another controller may have led meanwhile. */
  forgetAll(): void {
    this.#volumes.clear();
  }
}
