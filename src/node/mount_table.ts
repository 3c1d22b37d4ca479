import { mountsAt } from "../volume/rules/mounts_at.ts";
import { basename } from "node:path";
import type { CallContext } from "../volume/ports/system.ts";
import type { DeviceNode, MountEntry } from "../volume/ports/node_ports.ts";
import type { NodeDeps } from "./deps.ts";
import { VolumeError } from "../volume/errors.ts";

export { mountsAt };

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
function nodeBindsOf(table: readonly MountEntry[], devicePath: string): readonly MountEntry[] {
  return table.filter((entry) =>
    ["devtmpfs", "tmpfs"].includes(entry.filesystem) &&
    (isDeleted(entry) || isNodeOf(entry, devicePath))
  );
}

/** Whether what is bound there is a node of that device's name. */
function isNodeOf(entry: MountEntry, devicePath: string): boolean {
  return basename(entry.root.replace(/\/\/deleted$/, "")) === basename(devicePath);
}

/** Whether what is bound there was removed since: a device node goes with its device. */
export function isDeleted(entry: MountEntry): boolean {
  return entry.root.endsWith("//deleted");
}

/** Whether anything is mounted at one of those paths. */
export async function isAnyMounted(deps: NodeDeps, paths: readonly string[]): Promise<boolean> {
  const table = await deps.mounts.table();
  const points = await Promise.all(paths.map((path) => mountPointOf(deps, path)));
  return points.some((mountPath) => mountsAt(table, mountPath).length > 0);
}

/** Whether the mount has a block device under it. */
export function isOnBlockDevice(entry: MountEntry): boolean {
  return !entry.deviceNumber.startsWith("0:");
}

/** Whether the file system takes no writes, asked for or turned that way by an error. */
function isReadOnlyFilesystem(entry: MountEntry): boolean {
  return ["ro", "emergency_ro", "shutdown"].some((option) => entry.superOptions.includes(option));
}

/** Whether nothing can be written through this mount. */
export function isReadOnlyMount(entry: MountEntry): boolean {
  return entry.mountOptions.includes("ro") || isReadOnlyFilesystem(entry);
}

/**
 * Where the device's node is bound. A stale bind, left by an earlier device of whatever name, counts when its number
 * leads to this device now; of a node of this name, what cannot be told counts as well.
 */
export async function bindsOf(
  deps: NodeDeps,
  table: readonly MountEntry[],
  device: DeviceNode,
  context: CallContext,
): Promise<readonly MountEntry[]> {
  const binds: MountEntry[] = [];
  for (const bind of nodeBindsOf(table, device.path)) {
    const info = await deps.paths.info(bind.mountPoint, context);
    const isIt = info?.kind === "block"
      ? info.deviceNumber === device.deviceNumber
      : isNodeOf(bind, device.path);
    if (isIt) binds.push(bind);
  }
  return binds;
}

/**
 * Whether the file system mounted at a path still gives its own root. An xfs that was shut down by an error does not,
 * and the mount table says nothing of that.
 */
export async function rootAnswers(deps: NodeDeps, path: string, context: CallContext): Promise<boolean> {
  try {
    return (await deps.paths.info(path, context))?.kind === "directory";
  } catch (error) {
    context.signal.throwIfAborted();
    if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline")) return false;
    throw error;
  }
}

/**
 * How the kernel writes a path of the kubelet's as a mount point. Where the mount table shows the folder that it lies in on the file
 * system of this driver's own state, no child is needed to look: if that hangs, nothing here goes on anyway.
 */
export async function mountPointOf(deps: NodeDeps, path: string): Promise<string> {
  const at = path.lastIndexOf("/");
  const [folder, name] = [path.slice(0, at) || "/", path.slice(at + 1)];
  const table = await deps.mounts.table();
  const own = mountOf(table, deps.settings.statePath);
  if (own !== undefined && mountOf(table, folder) === own) {
    const real = await deps.paths.realPath(folder);
    if (real !== undefined) return `${real === "/" ? "" : real}/${name}`;
  }
  return await deps.paths.mountPoint(path);
}

/** The mount that a path lies on, as far as its text says. */
function mountOf(table: readonly MountEntry[], path: string): MountEntry | undefined {
  const covers = ({ mountPoint }: MountEntry) =>
    mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`);
  // Of several at one place the last one is on top.
  return table.filter(covers).toReversed().toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0];
}
