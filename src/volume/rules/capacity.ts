import { VolumeError } from "../errors.ts";
import { assertPoolReadable } from "./absence.ts";
import { poolOf } from "../model/ids/ids.ts";
import type { CreateView, Inventory, Pool, StoredFile, StoredVolume } from "../model/inventory.ts";
import { parseSnapshots } from "../model/snapshots/snapshots.ts";
import { formatBytes } from "../model/sizes.ts";

/** How much of a pool may be promised: 1 promises exactly its size. */
export type Overcommit = number;

/** What is promised on a router: its disks, and its files as far as they were read, including snapshots. */
export type Promises = Pick<CreateView, "volumes" | "files">;

/**
 * Bytes that can still be promised on a pool.
 *
 * Free space says little, because images are sparse and it does not fall when one is made. What counts is what was
 * promised to every file-backed disk of every owner, and to every snapshot, which keeps the blocks that its source
 * overwrites. Never negative.
 */
export function availableBytes(pool: Pool, promises: Promises, overcommit: Overcommit): bigint {
  return availableBeside(pool, promisedBytes(pool, promises), overcommit);
}

/** Like `availableBytes()`, for a known sum of promises. */
export function availableBeside(pool: Pool, promised: bigint, overcommit: Overcommit): bigint {
  const left = promisableBytes(pool, overcommit) - promised;
  const available = left < pool.freeBytes ? left : pool.freeBytes;
  return available > 0n ? available : 0n;
}

/**
 * Bytes that were promised on a pool beyond the limit; 0 when it is at most exactly full.
 *
 * @param moreBytes what is about to be promised besides
 */
export function overPromisedBytes(
  pool: Pool,
  promises: Promises,
  overcommit: Overcommit,
  moreBytes = 0n,
): bigint {
  const over = promisedBytes(pool, promises) + moreBytes - promisableBytes(pool, overcommit);
  return over > 0n ? over : 0n;
}

/**
 * Whether a sum that may be out of date still proves enough room: at least a tenth of the pool, and as much as all
 * requests in flight want together, must be left.
 *
 * @param promised including the requests in flight
 */
export function isAmple(
  pool: Pick<Pool, "sizeBytes">,
  promised: bigint,
  inFlight: bigint,
  overcommit: Overcommit,
): boolean {
  const tenth = pool.sizeBytes / 10n;
  return promisableBytes(pool, overcommit) - promised >= (inFlight > tenth ? inFlight : tenth);
}

function promisableBytes(pool: Pick<Pool, "sizeBytes">, overcommit: Overcommit): bigint {
  // Thousandths keep the factor exact in integers.
  return pool.sizeBytes * BigInt(Math.round(overcommit * 1000)) / 1000n;
}

/** The size of all disks on a pool together, in bytes, without snapshots. */
export function diskBytes(pool: Pool, { volumes }: Pick<Promises, "volumes">): bigint {
  return promisedBytes(pool, { volumes, files: [] });
}

/** What snapshots on a pool take besides, in bytes. */
export function snapshotBytes(pool: Pool, promises: Promises): bigint {
  return promisedBytes(pool, promises) - diskBytes(pool, promises);
}

/** Bytes that were promised on a pool: to every file-backed disk, and to every snapshot. */
export function promisedBytes(pool: Pool, { volumes, files }: Promises): bigint {
  const images: readonly (StoredVolume | StoredFile)[] = [...volumes, ...snapshotFiles(files, volumes)];
  return images.reduce(
    (sum, image) => poolOf(pathOf(image)) === pool.mountPoint ? sum + image.sizeBytes : sum,
    0n,
  );
}

/**
 * Refuses to conclude what is left of a pool that holds a disk of unknown size.
 *
 * @throws {VolumeError} unavailable naming the disk
 */
export function assertSizesKnown(pool: Pick<Pool, "mountPoint">, promises: Pick<Promises, "volumes">): void {
  const unknown = findUnknownSize(pool, promises);
  if (unknown === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot determine what is left on the pool because the router does not say how large a disk on it is: ` +
      `pool=${pool.mountPoint} disk=${unknown.id}: ${unknown.unreadable}; see /disk print detail on the router`,
  );
}

/** A disk on the pool of which no size is known. */
export function findUnknownSize(
  { mountPoint }: Pick<Pool, "mountPoint">,
  { volumes }: Pick<Promises, "volumes">,
): StoredVolume | undefined {
  return volumes.find((volume) => volume.sizeUnknown && poolOf(volume.imagePath) === mountPoint);
}

/** A snapshot that is also a disk's image is counted as the disk. */
function snapshotFiles(files: readonly StoredFile[], volumes: readonly StoredVolume[]): StoredFile[] {
  const disks = new Set(volumes.map((volume) => volume.imagePath));
  const paths = new Set(parseSnapshots(files).map((snapshot) => snapshot.imagePath));
  return files.filter((file) => paths.has(file.path) && !disks.has(file.path));
}

function pathOf(image: StoredVolume | StoredFile): string {
  return "imagePath" in image ? image.imagePath : image.path;
}

/**
 * The pool of a base path.
 *
 * @throws {VolumeError} unavailable when it is not mounted, or its row cannot be read
 */
export function getPool(inventory: Pick<Inventory, "pools" | "unreadablePools">, basePath: string): Pool {
  const pool = inventory.pools.find((pool) => pool.mountPoint === poolOf(basePath));
  if (pool !== undefined) return pool;
  assertPoolReadable(inventory, basePath);
  throw new VolumeError(
    "unavailable",
    "Cannot use the pool because it is not mounted on the router: " +
      `pool=${poolOf(basePath)} basePath=${basePath}`,
  );
}

/**
 * Refuses to promise more than the pool can hold.
 *
 * @param own paths of unfinished copies that already take a part of what is needed
 * @throws {VolumeError} exhausted when fewer than `neededBytes` are left; unavailable when that cannot be told
 */
export function assertRoom(
  view: CreateView,
  basePath: string,
  neededBytes: bigint,
  overcommit: Overcommit,
  own: readonly string[] = [],
): void {
  const pool = getPool(view, basePath);
  assertSizesKnown(pool, view);
  const copies = view.files.filter(({ path }) => own.includes(path) && poolOf(path) === pool.mountPoint);
  const freeBytes = copies.reduce((sum, { sizeBytes }) => sum + sizeBytes, pool.freeBytes);
  const others = { volumes: view.volumes, files: view.files.filter((file) => !copies.includes(file)) };
  const available = availableBytes({ ...pool, freeBytes }, others, overcommit);
  if (neededBytes <= available) return;
  throw new VolumeError(
    "exhausted",
    `Cannot find room on the pool: needs ${formatBytes(neededBytes)}, ${formatBytes(available)} left on ` +
      `pool ${pool.mountPoint} (free ${formatBytes(pool.freeBytes)} of ${formatBytes(pool.sizeBytes)}, ` +
      `overcommit ${overcommit}); delete a volume or a snapshot, or raise --overcommit`,
  );
}
