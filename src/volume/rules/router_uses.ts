import { VolumeError } from "../errors.ts";
import type { StoredVolume } from "../model/inventory.ts";

/** What ends a use that a person can end by one property. The adapter of RouterOS names the uses. */
const ends: Readonly<Record<string, string>> = {
  "it is disabled": "disabled=no",
  "its file system is mounted": "mount-filesystem=no",
  "it is swap space": "swap=no",
  "it is exported over iSCSI": "iscsi-export=no",
  "it is shared over NFS": "nfs-sharing=no",
  "it is shared over SMB": "smb-sharing=no",
  "it is exported over SMB": "smb-export=no",
  "its media are shared": "media-sharing=no",
};

/** The use by a partition, or what is encrypted there, which the router has mounted. The console takes such a slot as it is. */
const mountedUpon = /^a disk is on it: disk=([\w.-]+)$/;

/**
 * What to do before the router's disk can be used: the commands for the uses that one ends, and for no other. An entry of a
 * partition is not to be removed: that removes the partition.
 */
export function adviceOnUses(id: string, uses: readonly string[]): string {
  const settings = uses.flatMap((use) => Object.hasOwn(ends, use) ? [ends[use]!] : []);
  const upon = uses.flatMap((use) => mountedUpon.exec(use)?.[1] ?? []);
  const commands = [
    ...settings.length === 0 ? [] : [`/disk set [find slot="${id}"] ${settings.join(" ")}`],
    ...upon.map((slot) => `/disk set [find slot="${slot}"] mount-filesystem=no`),
  ];
  return `end that first${commands.length === 0 ? "" : `: ${commands.join("; ")}`}`;
}

/**
 * Refuses a volume whose disk the router itself uses: the router and a node would both write to it without knowing of
 * each other.
 *
 * @throws {VolumeError} precondition naming the uses
 */
export function assertNotUsedByRouter({ id, routerUses = [] }: StoredVolume, verb: string): void {
  if (routerUses.length === 0) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because the router itself uses its disk: ${routerUses.join(", ")}: ` +
      `volume=${id}; ${adviceOnUses(id, routerUses)}`,
  );
}

/**
 * Whether the command that turns the export on should also stop the router from mounting the disk. Only while no export
 * is on, so that no node is disconnected by it.
 */
export function isToBeKeptUnmounted({ exported, mayBeMounted, routerUses }: StoredVolume): boolean {
  return mayBeMounted === true && !exported && routerUses === undefined;
}
