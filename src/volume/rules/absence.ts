import { VolumeError } from "../errors.ts";
import { poolOf } from "../model/ids.ts";
import { isImageOf } from "../model/image_names.ts";
import type { RouterState, StoredFile } from "../model/inventory.ts";

/** How long after its boot a router may still be bringing disks back, unless a probe says otherwise. */
export const defaultSettleMs = 120_000;

/**
 * Throws while a router may still be starting, because absence then proves nothing.
 *
 * @throws {VolumeError} unavailable until the router has been up for `settleMs`
 */
export function assertSettled(state: Pick<RouterState, "upMs">, settleMs: number): void {
  if (state.upMs >= settleMs) return;
  const left = Math.ceil((settleMs - state.upMs) / 1000);
  throw new VolumeError(
    "unavailable",
    `Cannot determine which disks the router has because it booted only ${
      Math.floor(state.upMs / 1000)
    } s ago and disks come ` +
      `back late: try again in ${left} s`,
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

/** @throws {VolumeError} unavailable when the pool of `path` is not mounted */
export function assertPoolMounted(state: RouterState, path: string): void {
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
