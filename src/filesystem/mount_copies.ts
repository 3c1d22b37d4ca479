import type { MountEntry } from "../volume/ports/node_ports.ts";
import { parseMountinfo } from "./mountinfo.ts";
import { parsePeerGroups, type PeerGroups } from "./propagation.ts";

/** A whole mount table, with the groups of its mounts. */
export interface PropagatedTable {
  readonly entries: readonly MountEntry[];
  readonly groups: ReadonlyMap<number, PeerGroups>;
}

/** Parses mountinfo with its groups. */
export function parsePropagatedTable(text: string): PropagatedTable {
  return { entries: parseMountinfo(text), groups: parsePeerGroups(text) };
}

/**
 * Whether a mount in another table is the kernel's copy of one of our own: the kernel makes it in every mount that receives from
 * the one which ours is in, at the same place, and unmounts it with ours.
 */
export function isCopy(own: PropagatedTable, other: PropagatedTable, entry: MountEntry): boolean {
  const parent = parentOf(other, entry);
  const receives = parent === undefined ? undefined : other.groups.get(parent.mountId);
  if (parent === undefined || receives === undefined) return false;
  const place = placeIn(parent, entry);
  return own.entries.some((ours) => {
    const around = ours.deviceNumber === entry.deviceNumber ? parentOf(own, ours) : undefined;
    const group = around === undefined ? undefined : own.groups.get(around.mountId)?.shared;
    return group !== undefined && [receives.shared, receives.master].includes(group) &&
      placeIn(around!, ours) === place;
  });
}

function parentOf({ entries }: PropagatedTable, { parentId }: MountEntry): MountEntry | undefined {
  return entries.find(({ mountId }) => mountId === parentId);
}

/** Where a mount is in the file system around it. */
function placeIn(parent: MountEntry, { mountPoint }: MountEntry): string {
  const inside = parent.mountPoint === "/" ? mountPoint : mountPoint.slice(parent.mountPoint.length);
  return `${parent.root === "/" ? "" : parent.root}${inside}`;
}
