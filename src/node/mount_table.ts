import { mountsAt } from "../volume/rules/host/mounts_at.ts";
import { bindsOf, isDeleted } from "../volume/rules/host/device_mounts.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { MountEntry } from "../volume/ports/node_ports.ts";
import type { NodeDeps } from "./deps.ts";
import { VolumeError } from "../volume/errors.ts";
import type { DeviceUser } from "../volume/model/host/device_user.ts";

export { bindsOf, isDeleted, mountsAt };

/** Whether anything is mounted at one of those paths. */
export async function isAnyMounted(deps: NodeDeps, paths: readonly string[]): Promise<boolean> {
  const table = await deps.mounts.table();
  const points = await Promise.all(paths.map((path) => mountPointOf(deps, path)));
  return points.some((mountPath) => mountsAt(table, mountPath).length > 0);
}

/** Who has the device that is mounted there. */
export function mountUser({ source, mountPoint }: MountEntry): DeviceUser {
  return { device: source, by: "mount", at: mountPoint };
}

/** Whether the mount has a block device under it. */
export function isOnBlockDevice(entry: MountEntry): boolean {
  return !entry.deviceNumber.startsWith("0:");
}

/** Whether the file system takes no writes, on request or after an error. */
function isReadOnlyFilesystem(entry: MountEntry): boolean {
  return ["ro", "emergency_ro", "shutdown"].some((option) => entry.superOptions.includes(option));
}

/** Whether nothing can be written through this mount. */
export function isReadOnlyMount(entry: MountEntry): boolean {
  return entry.mountOptions.includes("ro") || isReadOnlyFilesystem(entry);
}

/**
 * Whether the root of the file system mounted at a path can still be read. An xfs that was shut down by an error cannot
 * be, and the mount table does not show that.
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
 * Returns a kubelet's path as the kernel writes it for a mount point. Where the mount table shows that its folder lies
 * on the file system of this driver's own state, no child process is needed to resolve it: if that file system hangs,
 * the driver hangs anyway.
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

/** The mount that a path lies on, by its text alone. */
function mountOf(table: readonly MountEntry[], path: string): MountEntry | undefined {
  const covers = ({ mountPoint }: MountEntry) =>
    mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`);
  // Of several mounts at one mount point the last one is on top.
  return table.filter(covers).toReversed().toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0];
}
