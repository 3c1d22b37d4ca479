import type { FilesystemType } from "../volume/model/capabilities.ts";

/** A stage that fails disconnects the volume: by then its device is gone, or another volume's. */
const attachFirst = "attach it by hand (rds-csi attach VOLUME, docs/guides/rescue.md), " +
  "and with the DEVICE that this prints: ";

/** Commands that show the damage of an unmounted file system without changing it. */
const lookCommands: Readonly<Record<FilesystemType, string>> = {
  ext4: "e2fsck -f -n DEVICE",
  xfs: "xfs_repair -n DEVICE",
};

/** How a person inspects a file system that could not be mounted. */
export function lookAdvice(filesystem: FilesystemType): string {
  return `with no pod using it, ${attachFirst}${lookCommands[filesystem]}`;
}

/** How a person repairs an ext4 that the check before a mount does not repair, which may lose files. The device is read-only at first. */
export const repairAdvice =
  `with no pod using it, take a snapshot or a copy, ${attachFirst}blockdev --setrw DEVICE; e2fsck -f DEVICE`;
