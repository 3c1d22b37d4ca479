import { VolumeError } from "../errors.ts";
import { digest } from "./digest.ts";
import { isLegacyId, poolOf } from "./ids/ids.ts";
import { inSubvolume } from "./image_names.ts";
import type { ImageLocation, Pool, StoredFile } from "./inventory.ts";

const markPrefix = "no-disk-";

/** Whether subvolumes of a file system may be nested, or lie only at its top. */
export type SubvolumeNames = "nested" | "flat";

/**
 * Where a new image goes: into its own Btrfs subvolume where the pool supports that, so that it can be snapshotted;
 * else it is a plain file.
 *
 * @throws {VolumeError} unavailable while a volume, or another mounted disk, has the pool's label
 */
export function imageLocationFor(
  basePath: string,
  filePrefix: string,
  pool: Pool,
  names: SubvolumeNames,
): ImageLocation {
  const nested = basePath !== `/${pool.mountPoint}`;
  const plain = plainLocation(`${basePath}/${filePrefix}.img`);
  if (nested && names === "flat") return plain;
  assertOwnLabel(pool);
  if (pool.subvolumeLabel === undefined) return plain;
  return subvolumeLocation(`${basePath}/${filePrefix}`, pool.subvolumeLabel);
}

/** Whether nothing else has the label of the pool, if it has one. */
export function hasOwnLabel({ labelTakenBy, labelSharedWith }: Pool): boolean {
  return labelTakenBy === undefined && labelSharedWith === undefined;
}

/**
 * Refuses to make a subvolume by a label that a volume has too: whoever writes to a volume chooses its label, and the
 * router may take either file system. The message, which tenants read, does not name the label. The same goes for two
 * mounts: a plain file in its place could not be snapshotted, and nobody would notice.
 *
 * @throws {VolumeError} unavailable while there is such a volume, or such a mount
 */
export function assertOwnLabel(pool: Pool): void {
  assertMountedOnce(pool);
  const { labelTakenBy, mountPoint } = pool;
  if (labelTakenBy === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot make a subvolume because a volume has the label of its pool: pool=${mountPoint} ` +
      `volume=${labelTakenBy}; have its user change the label in it`,
  );
}

/** @throws {VolumeError} unavailable naming the other disk */
function assertMountedOnce({ mountPoint, labelSharedWith: twin }: Pool): void {
  if (twin === undefined) return;
  const where = `pool=${mountPoint} disk=${twin.id}`;
  const remedy = `set mount-filesystem=no on ${twin.id}, unless images are used from there`;
  const reason = twin.sameFilesystem
    ? `the router mounts its file system a second time: ${where}; ${remedy}`
    : `another mounted disk has its label: ${where}; if /disk/print detail shows one fs-uuid for both, they are one ` +
      `file system: ${remedy}; else give one of the two another label`;
  throw new VolumeError("unavailable", `Cannot use the subvolumes of the pool because ${reason}`);
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
 * A folder in the subvolume of a clone that never had a disk, where a separate command adds the disk. The router makes
 * the folder right after the subvolume, and removes it right before it adds the disk. So a clone without a disk and
 * without this folder may have been used.
 *
 * Each attempt has a name of its own for it. A router that is late would else add the disk of an earlier attempt on the
 * clone of a later one, whose source may have been written to since: the record would call it blank.
 *
 * @param comment the comment of the attempt's disk
 */
export function neverUsedMark({ path }: ImageLocation, comment: string): string {
  return `${path.slice(0, -inSubvolume.length)}${markPrefix}${digest(comment, 8)}`;
}

/** Whether a path is that folder of any attempt. */
export function isNeverUsedMark(path: string, location: ImageLocation): boolean {
  const start = `${location.path.slice(0, -inSubvolume.length)}${markPrefix}`;
  return path.startsWith(start) && /^[0-9a-f]{8}$/.test(path.slice(start.length));
}

/** A path without its pool, as the file system names it. */
export function withinPool(path: string): string {
  return path.slice(poolOf(path).length + 2);
}

/**
 * The location of an existing image.
 *
 * @throws {VolumeError} unavailable when its pool shows no subvolumes now: it is not mounted, or not by a label of its own
 */
export function locationOf(imagePath: string, pools: readonly Pool[]): ImageLocation {
  if (!imagePath.endsWith(`/${inSubvolume}`)) return plainLocation(imagePath);
  const pool = pools.find((pool) => pool.mountPoint === poolOf(imagePath));
  if (pool !== undefined) assertMountedOnce(pool);
  const label = pool?.subvolumeLabel;
  if (label === undefined) {
    throw new VolumeError(
      "unavailable",
      `Cannot determine which subvolume holds the image because its pool shows no label of a Btrfs file system: path=${imagePath}`,
    );
  }
  return subvolumeLocation(imagePath.slice(0, -inSubvolume.length - 1), label);
}

/**
 * The remains of a volume or a snapshot in the allowed folders, to be removed: its image, its subvolume, and unfinished
 * copies. A subvolume is removed with everything in it. The legacy driver made neither copies nor subvolumes: a folder
 * of its volume's name is not the driver's.
 *
 * @param files every file and folder whose path contains the file-name prefix
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
  // A subvolume appears both as its folder and as the image in it.
  return locations.filter((location, index) =>
    locations.findIndex(({ path }) => path === location.path) === index
  );
}

/** The text after the file-name prefix of a path in one of the folders; undefined for any other path. */
function restOf(path: string, filePrefix: string, basePaths: readonly string[]): string | undefined {
  const base = basePaths.find((base) => path.startsWith(`${base}/${filePrefix}`));
  return base === undefined ? undefined : path.slice(`${base}/${filePrefix}`.length);
}

/** Paths of unfinished copies of a volume in the allowed folders. */
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

/** The path of a copy until it is complete. A nonce keeps each attempt away from another one's file. */
export function unfinishedPath(path: string, nonce: string): string {
  return `${path}.${nonce}.part`;
}

function isUnfinished(rest: string): boolean {
  return /^\.img\.[0-9a-f]{8}\.part$/.test(rest);
}
