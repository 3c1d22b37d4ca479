import type { MountEntry } from "../../ports/node_ports.ts";

/**
 * The mounts at that mount point, the visible one last.
 *
 * Some installations bind the kubelet's folder over itself and share it. Such a folder shows everything mounted in it
 * twice, once in the mount that it covers, which may be that of the whole disk. No path reaches that copy, and it disappears with the other one.
 */
export function mountsAt(table: readonly MountEntry[], mountPoint: string): readonly MountEntry[] {
  const entries = table.filter((entry) => entry.mountPoint === mountPoint);
  if (entries.length < 2) return entries;
  const reached = entries.filter((entry) => isReached(table, entry));
  return reached.length > 0 ? reached : entries;
}

/** Whether no other mount covers a folder on the way to this one. */
function isReached(table: readonly MountEntry[], entry: MountEntry): boolean {
  const lineage = lineageOf(table, entry);
  return lineage.slice(1).every((above, index) => {
    const { mountId, mountPoint } = lineage[index]!;
    return !table.some((other) =>
      other.parentId === above.mountId && other.mountId !== mountId && other.mountId !== above.mountId &&
      `${mountPoint}/`.startsWith(other.mountPoint === "/" ? "/" : `${other.mountPoint}/`) &&
      other.mountPoint !== mountPoint
    );
  });
}

/** The mount, its parent mount, and so on. */
function lineageOf(table: readonly MountEntry[], entry: MountEntry): readonly MountEntry[] {
  const lineage: MountEntry[] = [];
  for (let at: MountEntry | undefined = entry; at !== undefined && !lineage.includes(at);) {
    lineage.push(at);
    const { parentId }: MountEntry = at;
    at = table.find((other) => other.mountId === parentId);
  }
  return lineage;
}
