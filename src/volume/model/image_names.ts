import { isLegacyId, isVolumeId } from "./ids/ids.ts";

/**
 * Name of the image in every subvolume. It is the same everywhere, so that a snapshot of the subvolume needs no
 * renaming.
 */
export const inSubvolume = "disk.img";

/**
 * The prefix of the names of all files and folders of a volume: `<id>.<cluster hash>`.
 *
 * The cluster hash is part of the name because removing the disk entry destroys the record, and a repeated delete must
 * still know which file is its own. The id of a volume of the legacy Go driver has another form, which this driver
 * never makes. Such a volume keeps its file, `<id>`.
 */
export function filePrefixOf(id: string, cluster: string): string {
  return isLegacyId(id) ? id : `${id}.${cluster}`;
}

/** Whether the image of that file-name prefix can have this path, in any folder. */
export function isImageOf(path: string, filePrefix: string): boolean {
  if (path.endsWith(`/${filePrefix}.img`)) return true;
  return !isLegacyId(filePrefix) && path.endsWith(`/${filePrefix}/${inSubvolume}`);
}

/** The volume of the cluster that an image is named after, in any folder; undefined for any other name. */
export function volumeOfImage(path: string, cluster: string): string | undefined {
  const name = path.replace(/(?:\/disk)?\.img$/, "").split("/").at(-1)!;
  const id = name.endsWith(`.${cluster}`) ? name.slice(0, -cluster.length - 1) : name;
  return isVolumeId(id) && isImageOf(path, filePrefixOf(id, cluster)) ? id : undefined;
}

/** The base folder of a volume, from the path of its image. */
export function baseOf(imagePath: string, filePrefix: string): string {
  return imagePath.slice(0, imagePath.lastIndexOf(`/${filePrefix}`));
}
