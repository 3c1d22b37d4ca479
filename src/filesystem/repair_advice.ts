import type { FilesystemType } from "../volume/model/capabilities.ts";

/** A stage that fails disconnects the volume: its device is gone by then, or another volume's. */
const attachFirst =
  "with no pod using it, attach it by hand (rds-csi attach VOLUME, docs/guides/rescue.md), " +
  "and with the DEVICE that this prints: ";

/** What shows the damage of a file system that is not mounted, and changes nothing. */
const lookCommands: Readonly<Record<FilesystemType, string>> = {
  ext4: "e2fsck -f -n DEVICE",
  xfs: "xfs_repair -n DEVICE",
};

/** How a person looks at a file system that could not be mounted. */
export function lookAdvice(filesystem: FilesystemType): string {
  return attachFirst + lookCommands[filesystem];
}

/** How a person repairs an ext4 that the check before a mount must not; the device takes no writes at first. */
export const repairAdvice = `${attachFirst}blockdev --setrw DEVICE; e2fsck -f DEVICE`;
