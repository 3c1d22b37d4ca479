import { parentFolder } from "./ids.ts";
import { digest } from "./digest.ts";
import { baseOf, filePrefixOf, isImageOf } from "./layout.ts";
import type { OwnedVolume, VolumeRecord } from "./record.ts";

/** What a volume is made from. */
export interface SourceRef {
  readonly kind: "volume" | "snapshot";
  readonly id: string;
}

/** As it stands in the record: `v:` or `s:` and the id. */
export function formatSource({ kind, id }: SourceRef): string {
  return `${kind === "volume" ? "v" : "s"}:${id}`;
}

/**
 * What stands for the source of a volume that was there before: it binds the record to the slot and to the file, as neither's
 * name tells. A disk that was copied on the router carries the record of another slot, and a disk that was pointed to
 * another file that of another file.
 */
export function importedSource(id: string, imagePath: string): string {
  return `i:${digest(`${id}\n${imagePath}`, 16)}`;
}

/** Whether somebody else made the disk and a person had it imported: its image is never removed. */
export function isImported(record: Pick<VolumeRecord, "source">): boolean {
  return record.source?.startsWith("i:") === true;
}

/** Whether its disk uses the image that is this volume's: the one that was imported, or the one that is named after it. */
export function usesOwnImage({ stored, record }: OwnedVolume, cluster: string): boolean {
  const { id, imagePath } = stored;
  return isImported(record)
    ? record.source === importedSource(id, imagePath)
    : isImageOf(imagePath, filePrefixOf(id, cluster));
}

/** The folder in which the image lies, or its subvolume. */
export function folderOf({ stored, record }: OwnedVolume, cluster: string): string {
  const { id, imagePath } = stored;
  return isImported(record) ? parentFolder(imagePath) : baseOf(imagePath, filePrefixOf(id, cluster));
}
