import type { StoredFile } from "../../src/volume/model/inventory.ts";
import type { Premise } from "../../src/volume/ports/premise.ts";
import type { VolumeStore, Write } from "../../src/volume/ports/store.ts";

/** A write by what it does; the unseen ones rest on no read. */
type WriteKind =
  | "add"
  | "addAlone"
  | "addUnseen"
  | "change"
  | "exportUnseen"
  | "growUnseen"
  | "remove"
  | "removeUnseen";

/** The commands that can have a mishap. */
export type StoreMethod = keyof VolumeStore | WriteKind;

/** What a write does. */
export function writeMethod(write: Write, premises: readonly Premise[]): WriteKind {
  const asks = (...kinds: readonly Premise["is"][]) => premises.some(({ is }) => kinds.includes(is));
  if ("add" in write) return write.readsAll ? "add" : asks("slot-free") ? "addUnseen" : "addAlone";
  if ("remove" in write) return asks("alone") ? "removeUnseen" : "remove";
  return asks("size") ? "growUnseen" : asks("alone") ? "exportUnseen" : "change";
}

/** How one command fails or is disturbed. */
export interface Mishap {
  /** Another client's action just before the command runs. */
  readonly before?: () => void;
  /** Another client's action between the command and the reading back. */
  readonly after?: () => void;
  /**
   * Whether it takes effect; `half` leaves the image of a removed disk, the subvolume of one to be added, half of a copy that
   * counts as done, and an export off that was to be toggled for a larger size.
   *
   * @default {true without a refusal}
   */
  readonly runs?: boolean | "half";
  /** The router's message instead of running it. */
  readonly refusal?: string;
  /** Nothing can be read afterwards: the caller does not learn whether it ran. A copy is then not done. */
  readonly unreadable?: boolean;
  /** How long it takes until it runs, in milliseconds; the test has to advance the clock. */
  readonly takesMs?: number;
  /** The router runs it only at `FakeVolumeStore.runLate()`. */
  readonly late?: boolean;
}

/** Cuts a byte off every unfinished copy. */
export function cutCopies({ allFiles }: { readonly allFiles: Map<string, StoredFile> }): void {
  for (const [path, file] of allFiles) {
    if (path.endsWith(".part")) allFiles.set(path, { ...file, sizeBytes: file.sizeBytes - 1n });
  }
}
