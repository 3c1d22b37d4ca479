import { VolumeError } from "../errors.ts";
import type { StoredVolume } from "../model/inventory.ts";

/**
 * Refuses a volume whose disk the router itself uses: both would write to it, and neither would know of the other.
 *
 * @throws {VolumeError} precondition naming the uses
 */
export function assertNotUsedByRouter({ id, routerUses = [] }: StoredVolume, verb: string): void {
  if (routerUses.length === 0) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because the router itself uses its disk: ${
      routerUses.join(", ")
    }: volume=${id}; ` +
      `end that first: a mounted file system by /disk set [find slot="${id}"] mount-filesystem=no`,
  );
}

/**
 * Whether the router is to be told, together with the export, that it mounts nothing in the disk: while no export is on, so
 * that nobody is cut off by that.
 */
export function isToBeKeptUnmounted({ exported, mayBeMounted, routerUses }: StoredVolume): boolean {
  return mayBeMounted === true && !exported && routerUses === undefined;
}
