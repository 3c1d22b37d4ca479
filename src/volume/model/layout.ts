import { VolumeError } from "../errors.ts";
import { isLegacyId, poolOf } from "./ids.ts";
import type { ImageLocation, Pool, StoredFile } from "./inventory.ts";

/** Name of the image in a subvolume: the same everywhere, so that a snapshot of the subvolume needs no renaming. */
const inSubvolume = "disk.img";

/**
 * What the names of all of a volume's files and folders begin with: `<id>.<cluster hash>`.
 *
 * The cluster hash is in the name because removing the disk entry destroys the record, and a retried delete must still
 * know which file is its own. A volume of the legacy Go driver has another form of id, which this driver gives nothing, and
 * keeps the file that it has: `<id>`.
 */
export function filePrefixOf(id: string, cluster: string): string {
  return isLegacyId(id) ? id : `${id}.${cluster}`;
}

/** Whether subvolumes of a file system may lie anywhere in it, or at its top only. */
export type SubvolumeNames = "nested" | "flat";

/**
 * Where a new image goes: into a Btrfs subvolume of its own where the pool can have one, so that it can be snapshotted;
 * else it is a plain file.
 *
 * @throws {VolumeError} unavailable while a volume has the pool's label
 */
export function imageLocationFor(
  basePath: string,
  filePrefix: string,
  pool: Pool,
  names: SubvolumeNames,
): ImageLocation {
  const nested = basePath !== `/${pool.mountPoint}`;
  if (pool.subvolumeLabel === undefined || (nested && names === "flat")) {
    return plainLocation(`${basePath}/${filePrefix}.img`);
  }
  assertOwnLabel(pool);
  return subvolumeLocation(`${basePath}/${filePrefix}`, pool.subvolumeLabel);
}

/**
 * Refuses to make a subvolume by a label that a volume has too, whose writer chooses it: nobody knows which of the two
 * the router would take.
 *
 * @throws {VolumeError} unavailable while there is one
 */
export function assertOwnLabel({ subvolumeLabel, labelTakenBy, mountPoint }: Pool): void {
  if (labelTakenBy === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot make a subvolume because a volume has the label of its pool: label=${subvolumeLabel} pool=${mountPoint} ` +
      `volume=${labelTakenBy}; have whoever writes to that volume change the label in it`,
  );
}

/** A plain file. */
export function plainLocation(path: string): ImageLocation {
  return { path, subvolume: undefined };
}

/** The image in a subvolume whose folder is `folder`. */
export function subvolumeLocation(folder: string, label: string): ImageLocation {
  return { path: `${folder}/${inSubvolume}`, subvolume: { label, path: withinPool(folder) } };
}

/**
 * A folder in the subvolume of a clone that has never had a disk, where its disk is added by a command of its own. The
 * router makes it right after the subvolume and removes it right before it adds the disk: a clone without a disk and
 * without this folder may have been used.
 */
export function neverUsedMark({ path }: ImageLocation): string {
  return `${path.slice(0, -inSubvolume.length)}no-disk-yet`;
}

/** A path without its pool: how a file system names what is in it. */
export function withinPool(path: string): string {
  return path.slice(poolOf(path).length + 2);
}

/** Whether a path is where the image of that file-name prefix can be, in whatever folder. */
export function isImageOf(path: string, filePrefix: string): boolean {
  if (path.endsWith(`/${filePrefix}.img`)) return true;
  return !isLegacyId(filePrefix) && path.endsWith(`/${filePrefix}/${inSubvolume}`);
}

/** The folder that was chosen for a volume, from the path of its image. */
export function baseOf(imagePath: string, filePrefix: string): string {
  return imagePath.slice(0, imagePath.lastIndexOf(`/${filePrefix}`));
}

/**
 * The place of an image that is there.
 *
 * @throws {VolumeError} unavailable when its pool shows no subvolumes now: it is not mounted, or not by its label
 */
export function locationOf(imagePath: string, pools: readonly Pool[]): ImageLocation {
  if (!imagePath.endsWith(`/${inSubvolume}`)) return plainLocation(imagePath);
  const label = pools.find((pool) => pool.mountPoint === poolOf(imagePath))?.subvolumeLabel;
  if (label === undefined) {
    throw new VolumeError(
      "unavailable",
      `Cannot tell which subvolume holds the image because its pool shows no label of a Btrfs file system: path=${imagePath}`,
    );
  }
  return subvolumeLocation(imagePath.slice(0, -inSubvolume.length - 1), label);
}

/**
 * What of a volume or a snapshot is left in the allowed folders, to be removed: its image, its subvolume, copies that
 * were never finished. What else lies in a subvolume goes with it. The legacy driver made neither: a folder that has the
 * name of its volume is somebody's.
 *
 * @param files every file and folder whose path holds the file-name prefix
 */
export function leftoversOf(
  files: readonly StoredFile[],
  filePrefix: string,
  basePaths: readonly string[],
  pools: readonly Pool[],
): ImageLocation[] {
  const locations = files.flatMap(({ path, directory }): ImageLocation[] => {
    const rest = restOf(path, filePrefix, basePaths);
    if (isLegacyId(filePrefix)) return rest === ".img" && !directory ? [plainLocation(path)] : [];
    if (rest === "" && directory) return [locationOf(`${path}/${inSubvolume}`, pools)];
    if (rest === undefined || directory) return [];
    if (rest === `/${inSubvolume}`) return [locationOf(path, pools)];
    return rest === ".img" || isUnfinished(rest) ? [plainLocation(path)] : [];
  });
  // A subvolume shows as its folder and as the image in it.
  return locations.filter((location, index) =>
    locations.findIndex(({ path }) => path === location.path) === index
  );
}

/** What follows the file-name prefix in a path in one of the folders; undefined for any other path. */
function restOf(path: string, filePrefix: string, basePaths: readonly string[]): string | undefined {
  const base = basePaths.find((base) => path.startsWith(`${base}/${filePrefix}`));
  return base === undefined ? undefined : path.slice(`${base}/${filePrefix}`.length);
}

/** Paths of the copies of a volume in the allowed folders that were never finished. */
export function unfinishedCopies(
  files: readonly StoredFile[],
  filePrefix: string,
  basePaths: readonly string[],
): string[] {
  return files.filter(({ path, directory }) =>
    !directory && isUnfinished(restOf(path, filePrefix, basePaths) ?? "")
  )
    .map(({ path }) => path);
}

/** Where a copy is made before it gets its name. A nonce keeps one attempt from another's file. */
export function unfinishedPath(path: string, nonce: string): string {
  return `${path}.${nonce}.part`;
}

function isUnfinished(rest: string): boolean {
  return /^\.img\.[0-9a-f]{8}\.part$/.test(rest);
}
