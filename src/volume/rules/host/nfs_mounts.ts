import type { MountEntry } from "../../ports/node_ports.ts";
import { mountsAt } from "./mounts_at.ts";

/** Whether the mount, or what it is a bind of, is an NFS share. */
export function isNfs({ filesystem }: MountEntry): boolean {
  return filesystem === "nfs4" || filesystem === "nfs";
}

/**
 * The path on the server of the folder that is mounted or bound: the kernel writes it into the source, such as
 * `10.0.0.1:/pool/a`, while the root of every NFS mount is `/` in the table.
 */
export function serverPath({ source }: MountEntry): string {
  return source.slice(source.indexOf(":/") + 1);
}

/**
 * The mounts that use a share: binds of folders in it, outside the driver's own folder.
 *
 * A folder may lie on another file system of the server, which the kernel mounts by itself below the share, and
 * unmounts again while the bind stays. So every folder of the export that is mounted with the same options counts, even
 * if it was bound from another share of the driver: a mount that is kept too long harms nothing.
 *
 * @param folder the driver's folder of shares
 */
export function usersOf(
  table: readonly MountEntry[],
  mountPoint: string,
  folder: string,
): readonly MountEntry[] {
  const isBelow = (path: string, parent: string) => path === parent || path.startsWith(`${parent}/`);
  const share = mountsAt(table, mountPoint).at(-1);
  const own = new Set(
    table.filter((entry) => isBelow(entry.mountPoint, mountPoint)).map(({ deviceNumber }) => deviceNumber),
  );
  return table.filter((entry) =>
    isNfs(entry) && !isBelow(entry.mountPoint, folder) &&
    (own.has(entry.deviceNumber) || share !== undefined && isInExport(entry, share))
  );
}

function isInExport(entry: MountEntry, share: MountEntry): boolean {
  const [path, exported] = [serverPath(entry), serverPath(share)];
  return serverOf(entry) === serverOf(share) &&
    (exported === "/" || path === exported || path.startsWith(`${exported}/`)) &&
    entry.superOptions.toSorted().join() === share.superOptions.toSorted().join();
}

function serverOf({ source }: MountEntry): string {
  return source.slice(0, source.indexOf(":/"));
}
