import type { Row } from "../console/json.ts";

/** Properties with which RouterOS says that a disk serves something beside NVMe/TCP, and what that is called here. */
const signs: Readonly<Record<string, string>> = {
  "disabled": "it is disabled",
  "mounted": "its file system is mounted",
  "formatting": "it is being formatted",
  "raid-member": "it is a member of an array",
  "raid-master": "it is a member of an array",
  "swap": "it is swap space",
  "encrypted": "it is encrypted",
  "iscsi-export": "it is exported over iSCSI",
  "nfs-sharing": "it is shared over NFS",
  "smb-sharing": "it is shared over SMB",
  "smb-export": "it is shared over SMB",
  "media-sharing": "its media are shared",
  "file-offset": "it begins within its file",
};

/** Properties with which another disk says that it lies on one. */
const links: readonly string[] = ["parent", "crypted-backend"];

/** By slot, the disks that lie on another one: its partitions, and what is encrypted on it. Of a look at few those that are mounted. */
export function disksUpon(rows: readonly Row[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const row of rows) {
    for (const link of links) {
      if (!row.isSet(link)) continue;
      const below = row.text(link);
      found.set(below, [...found.get(below) ?? [], row.text("slot", "")]);
    }
  }
  return found;
}

/** What the router does with a disk beside exporting it over NVMe/TCP. */
export function routerUses(row: Row, upon: readonly string[]): string[] {
  const own = Object.keys(signs).filter((key) => row.isSet(key)).map((key) => signs[key]!);
  return [...new Set([...own, ...upon.map((slot) => `a disk lies on it: disk=${slot}`)])];
}
