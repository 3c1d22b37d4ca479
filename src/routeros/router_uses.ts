import type { Row } from "./json.ts";

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

/**
 * What the router does with a disk beside exporting it over NVMe/TCP.
 *
 * @param rows all that came with it, among them every disk that is mounted
 */
export function routerUses(row: Row, id: string, rows: readonly Row[]): string[] {
  const own = Object.keys(signs).filter((key) => row.isSet(key)).map((key) => signs[key]!);
  const upon = rows.filter((other) => links.some((link) => other.isSet(link) && other.says(link, id)))
    .map((other) => `a disk lies on it: disk=${other.text("slot", "")}`);
  return [...new Set([...own, ...upon])];
}
