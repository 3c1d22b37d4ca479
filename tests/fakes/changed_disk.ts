import { assertReadable } from "../../src/volume/rules/ownership.ts";
import type { StoredVolume } from "../../src/volume/model/inventory.ts";
import type { VolumeChange } from "../../src/volume/ports/store.ts";

/** A disk as a router has it after a change. */
export function changedDisk(disk: StoredVolume, change: VolumeChange): StoredVolume {
  const on = change.export
    ? { exported: true, exportNqn: change.export.nqn, exportPort: change.export.port }
    : {};
  const { mayBeMounted, ...rest } = disk;
  return {
    ...rest,
    ...(mayBeMounted === undefined || change.neverMounted || change.bounce ? {} : { mayBeMounted }),
    comment: change.comment ?? disk.comment,
    sizeBytes: change.sizeBytes ?? disk.sizeBytes,
    ...(change.export === false ? { exported: false } : change.bounce ? { exported: true } : on),
  };
}

/** Like the adapter: a read of one disk fails where the router prints a row of it that cannot be read. */
export function readable(disk: StoredVolume | undefined): StoredVolume | undefined {
  assertReadable(disk, "read");
  return disk;
}

const mounted = "its file system is mounted";

/** A disk as a read of all of them shows it: no other use by the router than a mount. */
export function asListed({ routerUses, ...listed }: StoredVolume): StoredVolume {
  return routerUses?.includes(mounted) ? { ...listed, routerUses: [mounted] } : listed;
}
