import { VolumeError } from "../errors.ts";
import { poolOf } from "../model/ids/ids.ts";
import { isImageOf } from "../model/image_names.ts";
import type { Pool, RouterState, StoredFile } from "../model/inventory.ts";

/** How long after its boot a router may still be bringing disks back, unless a probe says otherwise. */
export const defaultSettleMs = 120_000;

/**
 * Throws while a router may still be starting, because absence then proves nothing.
 *
 * @throws {VolumeError} unavailable until the router has been up for `settleMs`
 */
export function assertSettled(state: Pick<RouterState, "upMs">, settleMs: number): void {
  if (state.upMs >= settleMs) return;
  const [up, left] = [Math.floor(state.upMs / 1000), Math.ceil((settleMs - state.upMs) / 1000)];
  throw new VolumeError(
    "unavailable",
    `Cannot determine which disks the router has because it booted only ${up} s ago and disks come back late: ` +
      `try again in ${left} s`,
  );
}

/**
 * Throws unless absence proves that a volume is gone: the router is settled, and every pool that could hold the image
 * is mounted.
 *
 * @param basePaths the folders in which the image could lie
 * @throws {VolumeError} unavailable when its absence proves nothing
 */
export function assertAbsenceProven(
  state: RouterState,
  basePaths: readonly string[],
  settleMs: number,
): void {
  assertSettled(state, settleMs);
  for (const basePath of basePaths) assertPoolMounted(state, basePath);
}

/** Why the router's row of the pool of `path` cannot be read, so that it is neither mounted nor absent; undefined where it is read. */
export function whyPoolUnreadable(
  { pools, unreadablePools = [] }: Pick<RouterState, "unreadablePools"> & {
    readonly pools: readonly Pick<Pool, "mountPoint">[];
  },
  path: string,
): string | undefined {
  const wanted = poolOf(path);
  if (pools.some(({ mountPoint }) => mountPoint === wanted)) return undefined;
  const found = unreadablePools.find(({ mountPoint }) => mountPoint === wanted) ??
    unreadablePools.find(({ mountPoint }) => mountPoint === "");
  return found?.reason;
}

/** @throws {VolumeError} unavailable when the router's row of the pool of `path` cannot be read */
export function assertPoolReadable(
  state: Pick<RouterState, "pools" | "unreadablePools">,
  path: string,
): void {
  const reason = whyPoolUnreadable(state, path);
  if (reason === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot use the pool because the router's row of it cannot be read: pool=${poolOf(path)}: ${reason}; ` +
      "see /disk print detail on the router",
  );
}

/**
 * For what is there, from which nobody concludes what is gone: a pool whose row cannot be read is listed as far as the router
 * shows it.
 *
 * @throws {VolumeError} unavailable when the router is not settled, or a pool of `basePaths` is not mounted
 */
export function assertShown(state: RouterState, basePaths: readonly string[], settleMs: number): void {
  assertSettled(state, settleMs);
  const odd = new Set(state.unreadablePools?.map(({ mountPoint }) => mountPoint));
  for (const path of basePaths) if (!odd.has(poolOf(path))) assertPoolMounted(state, path);
}

/** @throws {VolumeError} unavailable when the pool of `path` is not mounted, or its row cannot be read */
export function assertPoolMounted(state: RouterState, path: string): void {
  assertPoolReadable(state, path);
  const wanted = poolOf(path);
  if (state.pools.some((pool) => pool.mountPoint === wanted)) return;
  const mounted = state.pools.map((pool) => pool.mountPoint).join(", ");
  throw new VolumeError(
    "unavailable",
    `Cannot see what is on the pool because it is not mounted on the router: pool=${wanted} ` +
      `mounted=${mounted === "" ? "none" : mounted}`,
  );
}

/**
 * Concludes from a read without the disk that the volume does not exist.
 *
 * @throws {VolumeError} unavailable while an image of its name exists, or absence is not proven
 */
export function assertGone(
  id: string,
  filePrefix: string,
  view: RouterState & { readonly files: readonly StoredFile[] },
  basePaths: readonly string[],
  settleMs: number,
): void {
  assertAbsenceProven(view, basePaths, settleMs);
  const image = view.files.find((file) => !file.directory && isImageOf(file.path, filePrefix));
  if (image === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot find the disk of the volume though its image is there: volume=${id} file=${image.path}; ` +
      "the disk entry may still appear, or was removed on the router",
  );
}
