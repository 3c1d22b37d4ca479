import { basename } from "node:path";
import type { CallContext } from "../../ports/system.ts";
import type { DeviceNode, MountEntry, Paths } from "../../ports/node_ports.ts";

/**
 * Binds of device nodes that may be this device's: those of its name, and deleted ones of any name. The kernel reuses
 * names and numbers independently, so a deleted node of another name may have this device's number by now. Such an
 * entry shows the device number of the file system that the node lies in, so the bound node itself has to be read.
 */
function nodeBindsOf(table: readonly MountEntry[], devicePath: string): readonly MountEntry[] {
  return table.filter((entry) =>
    ["devtmpfs", "tmpfs"].includes(entry.filesystem) &&
    (isDeleted(entry) || isNodeOf(entry, devicePath))
  );
}

/** Whether the bound file is a device node of that name. */
function isNodeOf(entry: MountEntry, devicePath: string): boolean {
  return basename(entry.root.replace(/\/\/deleted$/, "")) === basename(devicePath);
}

/** Whether the bound file was removed since: a device node is removed with its device. */
export function isDeleted(entry: MountEntry): boolean {
  return entry.root.endsWith("//deleted");
}

/**
 * Where the device's node is bound. A stale bind, left by an earlier device of any name, counts when its number now
 * belongs to this device. A stale bind of this name counts also when its number is unknown.
 */
export async function bindsOf(
  paths: Pick<Paths, "info">,
  table: readonly MountEntry[],
  device: DeviceNode,
  context: CallContext,
): Promise<readonly MountEntry[]> {
  const binds: MountEntry[] = [];
  for (const bind of nodeBindsOf(table, device.path)) {
    const info = await paths.info(bind.mountPoint, context);
    const isIt = info?.kind === "block"
      ? info.deviceNumber === device.deviceNumber
      : isNodeOf(bind, device.path);
    if (isIt) binds.push(bind);
  }
  return binds;
}
