import type { StoredFile } from "../../src/volume/model/inventory.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";

/** The commands that a mishap can befall. */
export type StoreMethod = keyof VolumeStore;

/** How one command goes otherwise than well. */
export interface Mishap {
  /** What somebody else does just before the command runs. */
  readonly before?: () => void;
  /** What somebody else does between the command and the reading back. */
  readonly after?: () => void;
  /**
   * Whether it takes effect; `half` leaves the image of a removed disk, the subvolume of one to be added, and half of a copy.
   *
   * @default {true without a refusal}
   */
  readonly runs?: boolean | "half";
  /** What the router says instead of running it. */
  readonly refusal?: string;
  /** Nothing can be read afterwards: the caller is not told whether it ran. A copy is then not done. */
  readonly unreadable?: boolean;
  /** How long it takes until it runs, in milliseconds; somebody has to move the clock. */
  readonly takesMs?: number;
  /** The router runs it only at `FakeVolumeStore.runLate()`. */
  readonly late?: boolean;
}

/** Cuts a byte off every copy that has not got its name yet. */
export function cutCopies({ allFiles }: { readonly allFiles: Map<string, StoredFile> }): void {
  for (const [path, file] of allFiles) {
    if (path.endsWith(".part")) allFiles.set(path, { ...file, sizeBytes: file.sizeBytes - 1n });
  }
}
