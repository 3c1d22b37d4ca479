import { basename } from "node:path";
import type { MountEntry } from "../volume/ports/ports.ts";

export { mountsAt } from "../volume/rules/mounts_at.ts";

/** Where the file system on one of those devices is mounted or bound. */
export function mountsOf(
  table: readonly MountEntry[],
  deviceNumbers: ReadonlySet<string>,
): readonly MountEntry[] {
  return table.filter((entry) => deviceNumbers.has(entry.deviceNumber));
}

/**
 * Where device nodes are bound that may be this one's: of that name, and deleted ones of any name. Names and numbers are
 * given out anew apart from each other, so a deleted node of another name may have the number that is this device's by
 * now. Such an entry shows the device number of the file system that the node lies in, so what is bound has to be
 * looked at.
 */
export function nodeBindsOf(table: readonly MountEntry[], devicePath: string): readonly MountEntry[] {
  return table.filter((entry) =>
    ["devtmpfs", "tmpfs"].includes(entry.filesystem) &&
    (isDeleted(entry) || isNodeOf(entry, devicePath))
  );
}

/** Whether what is bound there is a node of that device's name. */
export function isNodeOf(entry: MountEntry, devicePath: string): boolean {
  return basename(entry.root.replace(/\/\/deleted$/, "")) === basename(devicePath);
}

/** Whether what is bound there was removed since: a device node goes with its device. */
export function isDeleted(entry: MountEntry): boolean {
  return entry.root.endsWith("//deleted");
}

/** Whether the mount has a block device under it. */
export function isOnBlockDevice(entry: MountEntry): boolean {
  return !entry.deviceNumber.startsWith("0:");
}

/** Whether the file system takes no writes, asked for or turned that way by an error. */
export function isReadOnlyFilesystem(entry: MountEntry): boolean {
  return ["ro", "emergency_ro", "shutdown"].some((option) => entry.superOptions.includes(option));
}

/** Whether nothing can be written through this mount. */
export function isReadOnlyMount(entry: MountEntry): boolean {
  return entry.mountOptions.includes("ro") || isReadOnlyFilesystem(entry);
}
