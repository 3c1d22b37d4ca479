import { VolumeError } from "./errors.ts";
import { poolOf } from "./ids.ts";
import type { Inventory, Pool, StoredVolume } from "./ports.ts";

/** How much of a pool may be promised: 1 promises exactly its size. */
export type Overcommit = number;

/** The file-backed disks that lie on a pool. */
export function volumesOn(pool: Pool, volumes: readonly StoredVolume[]): readonly StoredVolume[] {
  return volumes.filter((volume) => poolOf(volume.imagePath) === pool.mountPoint);
}

/**
 * Bytes that can still be promised on a pool.
 *
 * Free space says little, because images are sparse and it does not fall when one is made: what was promised to every
 * file-backed disk counts, whoever owns it. Never negative.
 */
export function availableBytes(pool: Pool, volumes: readonly StoredVolume[], overcommit: Overcommit): bigint {
  const left = promisableBytes(pool, overcommit) - promisedBytes(pool, volumes);
  const available = left < pool.freeBytes ? left : pool.freeBytes;
  return available > 0n ? available : 0n;
}

/** Bytes that were promised on a pool beyond what may be; 0 when it is at most exactly full. */
export function overPromisedBytes(
  pool: Pool,
  volumes: readonly StoredVolume[],
  overcommit: Overcommit,
): bigint {
  const over = promisedBytes(pool, volumes) - promisableBytes(pool, overcommit);
  return over > 0n ? over : 0n;
}

function promisableBytes(pool: Pool, overcommit: Overcommit): bigint {
  // Thousandths keep the factor exact in integers.
  return pool.sizeBytes * BigInt(Math.round(overcommit * 1000)) / 1000n;
}

function promisedBytes(pool: Pool, volumes: readonly StoredVolume[]): bigint {
  return volumesOn(pool, volumes).reduce((sum, volume) => sum + volume.sizeBytes, 0n);
}

/**
 * The pool that a base path lies on.
 *
 * @throws {VolumeError} unavailable when it is not mounted
 */
export function getPool(inventory: Inventory, basePath: string): Pool {
  const pool = inventory.pools.find((pool) => pool.mountPoint === poolOf(basePath));
  if (pool !== undefined) return pool;
  throw new VolumeError(
    "unavailable",
    `Cannot use the pool as it is not mounted on the router: pool=${poolOf(basePath)} basePath=${basePath}`,
  );
}

/**
 * Refuses what would promise more than the pool can hold.
 *
 * @throws {VolumeError} exhausted when fewer than `neededBytes` are left
 */
export function assertRoom(
  inventory: Inventory,
  basePath: string,
  neededBytes: bigint,
  overcommit: Overcommit,
): void {
  const pool = getPool(inventory, basePath);
  const available = availableBytes(pool, inventory.volumes, overcommit);
  if (neededBytes <= available) return;
  throw new VolumeError(
    "exhausted",
    `Cannot find room on the pool: pool=${pool.mountPoint} needed=${neededBytes} available=${available} ` +
      `free=${pool.freeBytes} size=${pool.sizeBytes} overcommit=${overcommit}`,
  );
}
