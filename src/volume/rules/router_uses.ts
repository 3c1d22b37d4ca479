import { VolumeError } from "../errors.ts";
import type { StoredVolume } from "../model/inventory.ts";

/**
 * Refuses a volume whose disk the router itself uses: the router and a node would both write to it without knowing of
 * each other.
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
 * Whether the command that turns the export on should also stop the router from mounting the disk. Only while no export
 * is on, so that no node is disconnected by it.
 */
export function isToBeKeptUnmounted({ exported, mayBeMounted, routerUses }: StoredVolume): boolean {
  return mayBeMounted === true && !exported && routerUses === undefined;
}
