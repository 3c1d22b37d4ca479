import type { MountEntry } from "../ports/node_ports.ts";

/**
 * What is mounted at that mount point, the visible one last.
 *
 * A folder that is bound over itself and shared, as some installations do with the kubelet's, shows everything mounted
 * in it twice, once in the mount that it covers. Such a copy is not reached by any path, and goes with the other one.
 */
export function mountsAt(table: readonly MountEntry[], mountPoint: string): readonly MountEntry[] {
  const entries = table.filter((entry) => entry.mountPoint === mountPoint);
  if (entries.length < 2) return entries;
  const reached = entries.filter((entry) => isReached(table, entry));
  return reached.length > 0 ? reached : entries;
}

/** Whether no mount that this one lies in is covered by another. */
function isReached(table: readonly MountEntry[], entry: MountEntry): boolean {
  const lineage = lineageOf(table, entry);
  return lineage.slice(1).every((above) => {
    const cover = table.find((other) =>
      other.parentId === above.mountId && other.mountPoint === above.mountPoint &&
      other.mountId !== above.mountId
    );
    return cover === undefined || lineage.includes(cover);
  });
}

/** The mount, what it is mounted in, and so on. */
function lineageOf(table: readonly MountEntry[], entry: MountEntry): readonly MountEntry[] {
  const lineage: MountEntry[] = [];
  for (let at: MountEntry | undefined = entry; at !== undefined && !lineage.includes(at);) {
    lineage.push(at);
    const { parentId }: MountEntry = at;
    at = table.find((other) => other.mountId === parentId);
  }
  return lineage;
}
