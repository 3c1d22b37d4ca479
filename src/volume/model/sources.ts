import { isLegacyEpoch } from "./epoch.ts";
import { isLegacyId, parentFolder } from "./ids/ids.ts";
import { digest } from "./digest.ts";
import { baseOf, filePrefixOf, isImageOf } from "./image_names.ts";
import type { OwnedVolume, VolumeRecord } from "./record.ts";

/** The source of a volume. */
export interface SourceRef {
  readonly kind: "volume" | "snapshot";
  readonly id: string;
}

/** Formats a source as the record has it: `v:` or `s:` and the id. */
export function formatSource({ kind, id }: SourceRef): string {
  return `${kind === "volume" ? "v" : "s"}:${id}`;
}

/**
 * The source field of an imported volume. It binds the record to the slot and to the file, because their names do not
 * contain the volume. A disk that was copied on the router has the record of another slot, and a disk that was pointed
 * at another file has the record of the earlier file.
 */
export function importedSource(id: string, imagePath: string): string {
  return `i:${digest(`${id}\n${imagePath}`, 16)}`;
}

/** Whether a person had the disk imported that something else had made: its image is never removed. */
export function isImported(record: Pick<VolumeRecord, "source">): boolean {
  return record.source?.startsWith("i:") === true;
}

/** Whether its disk uses the volume's own image: the one that was imported, or the one that is named after it. */
export function usesOwnImage({ stored, record }: OwnedVolume, cluster: string): boolean {
  const { id, imagePath } = stored;
  return isImported(record)
    ? record.source === importedSource(id, imagePath)
    : isImageOf(imagePath, filePrefixOf(id, cluster));
}

/** Whether the record tells all of a volume: an imported or a legacy one, and one on a file of another name, is always read. */
export function isPlain(volume: OwnedVolume, cluster: string): boolean {
  const { stored, record } = volume;
  return record.newerFields === undefined && !isImported(record) && !isLegacyId(stored.id) &&
    !isLegacyEpoch(record.epoch) && usesOwnImage(volume, cluster);
}

/** The folder that contains the image or its subvolume. */
export function folderOf({ stored, record }: OwnedVolume, cluster: string): string {
  const { id, imagePath } = stored;
  return isImported(record) ? parentFolder(imagePath) : baseOf(imagePath, filePrefixOf(id, cluster));
}
