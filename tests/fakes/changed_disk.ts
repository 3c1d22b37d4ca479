import { assertReadable } from "../../src/volume/rules/ownership.ts";
import type { StoredVolume } from "../../src/volume/model/inventory.ts";
import type { KnownDisk, VolumeChange } from "../../src/volume/ports/store.ts";

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

/** Whether that disk is neither exported nor mounted by the router, and one disk alone is on an image with the prefix. */
export function isUnused(disks: readonly StoredVolume[], id: string, filePrefix: string): boolean {
  const disk = disks.find((disk) => disk.id === id);
  const isMounted = disk?.routerUses?.includes("its file system is mounted");
  return disk?.exported === false && isMounted !== true &&
    disks.filter(({ imagePath }) => imagePath.includes(filePrefix)).length === 1;
}

/** Whether of all disks that one alone is on an image with the prefix, and not exported. */
export function isUnexportedAlone(disks: readonly StoredVolume[], id: string, filePrefix: string): boolean {
  const withPrefix = disks.filter(({ imagePath }) => imagePath.includes(filePrefix));
  return withPrefix.length === 1 && withPrefix.every((disk) => disk.id === id && !disk.exported);
}

/** Whether a disk is still on that image, as large and as exported as it was. */
export function isAsKnown(disk: StoredVolume | undefined, known: KnownDisk): boolean {
  return disk?.imagePath === known.imagePath && disk.sizeBytes === known.sizeBytes &&
    disk.exported === known.exported;
}

/** Like the adapter: a read of one disk fails where the router prints a row of it that cannot be read. */
export function readable(disk: StoredVolume | undefined): StoredVolume | undefined {
  assertReadable(disk, "read");
  return disk;
}
