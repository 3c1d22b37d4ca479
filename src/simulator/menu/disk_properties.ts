import { type Disk, servedNqn } from "../model/disk.ts";
import type { Router } from "../model/router.ts";
import type { Value } from "../value.ts";
import type { Flag, Notation } from "./menu.ts";
import type { ReadableProperty } from "./rows.ts";

type Told = (disk: Disk) => boolean;

const never: Told = () => false;
const isFile: Told = (disk) => disk.filePath !== "";
const isMember: Told = (disk) => disk.raidMaster !== "none";
const isExport: Told = (disk) => isFile(disk) || disk.exported;

/** Letters before a disk. */
export const diskFlags: readonly Flag[] = [
  { letter: "X", property: "disabled", legend: "DISABLED", column: 0 },
  { letter: "A", property: "acquired", legend: "ACQUIRED", column: 1 },
  { letter: "E", property: "empty", legend: "EMPTY", column: 1 },
  { letter: "B", property: "block-device", legend: "BLOCK-DEVICE", column: 1 },
  { letter: "M", property: "mounted", legend: "MOUNTED", column: 2 },
  { letter: "F", property: "formatting", legend: "FORMATTING", column: 2 },
  { letter: "S", property: "swap", legend: "SWAP-ENABLED", column: 2 },
  { letter: "p", property: "partition", legend: "PARTITION", column: 3 },
  { letter: "f", property: "raid-member-failed", legend: "RAID-MEMBER-FAILED", column: 4 },
  { letter: "r", property: "raid-member", legend: "RAID-MEMBER", column: 4 },
  { letter: "c", property: "encrypted", legend: "ENCRYPTED", column: 5 },
  { letter: "g", property: "guid-partition-table", legend: "GUID-PARTITION-TABLE", column: 6 },
  { letter: "t", property: "nvme-tcp-export", legend: "NVME-TCP-EXPORT", column: 7 },
  { letter: "i", property: "iscsi-export", legend: "ISCSI-EXPORT", column: 8 },
  { letter: "s", property: "smb-sharing", legend: "SMB-SHARING", column: 9 },
  { letter: "n", property: "nfs-sharing", legend: "NFS-SHARING", column: 10 },
];

/** Properties of a disk, in the order in which `print detail` shows them. */
export function diskProperties(router: Router): readonly ReadableProperty<Disk>[] {
  return [
    ...flagProperties,
    plain("type", (disk) => disk.type),
    quoted("slot", (disk) => disk.slot),
    quoted("comment", (disk) => disk.comment === "" ? undefined : disk.comment),
    quoted("slot-default", (disk) => disk.type === "hardware" ? disk.slot : "", never),
    quoted("parent", () => "", never),
    quoted("fs-label", (disk) => disk.pool?.label),
    plain("fs", (disk) => disk.pool === undefined ? "-" : router.filesystemOf(disk.pool)),
    ...descriptionProperties,
    ...spaceProperties(router),
    plain("mount-filesystem", (disk) => disk.mountFilesystem, isFile),
    plain("mount-read-only", () => false, never),
    plain("compress", () => false, never),
    plain("sector-size", () => 512n, isFile),
    plain("raid-master", (disk) => disk.raidMaster, isMember),
    quoted("state", (disk) => disk.pool?.state),
    ...(router.profile.vocabulary.rose ? exportProperties(router.profile.vocabulary.nqn) : []),
    ...(router.profile.vocabulary.rose ? fileProperties : []),
  ];
}

const flagProperties: readonly ReadableProperty<Disk>[] = [
  flag("disabled", (disk) => disk.disabled),
  flag("block-device", (disk) => !disk.disabled),
  flag("mounted", (disk) => disk.pool?.mounted ?? false),
  flag("raid-member", isMember, isMember),
];

const descriptionProperties: readonly ReadableProperty<Disk>[] = [
  quoted("model", (disk) => disk.model === "" ? undefined : disk.model, (disk) => disk.pool === undefined),
  quoted("serial", (disk) => disk.serial === "" ? undefined : disk.serial),
  quoted("interface", (disk) => disk.interface === "" ? undefined : disk.interface),
  property("size", "grouped", (disk) => disk.sizeBytes),
];

function spaceProperties(router: Router): readonly ReadableProperty<Disk>[] {
  const free = (disk: Disk) =>
    disk.pool?.mounted ? router.freeBytes({ ...disk, pool: disk.pool }) : undefined;
  return [
    property("free", "grouped", free),
    property("use", "percent", (disk) => percentUsed(disk.sizeBytes, free(disk))),
    quoted("mount-point", (disk) => disk.pool?.mounted ? disk.pool.mountPoint : undefined),
  ];
}

function exportProperties(hasNqn: boolean): readonly ReadableProperty<Disk>[] {
  const known = (disk: Disk, value: Value) => disk.port === undefined ? undefined : value;
  return [
    plain("nvme-tcp-export", (disk) => disk.exported, isExport),
    plain("nvme-tcp-server-port", (disk) => known(disk, BigInt(disk.port ?? 0))),
    ...(hasNqn ? [quoted("nvme-tcp-server-nqn", (disk) => disk.nqn)] : []),
    quoted("nvme-tcp-server-allow-host-name", (disk) => known(disk, disk.allowHostName)),
    plain("iscsi-export", () => false, never),
    plain("nfs-sharing", () => false, never),
    plain("smb-sharing", () => false, never),
    plain("media-sharing", () => false, never),
    plain("media-interface", () => "none", never),
    plain("swap", () => false, never),
  ];
}

const fileProperties: readonly ReadableProperty<Disk>[] = [
  plain("file-path", (disk) => isFile(disk) ? disk.filePath : undefined),
  property("file-size", "rounded", (disk) => isFile(disk) ? disk.fileSizeBytes : undefined),
  plain("file-offset", (disk) => isFile(disk) ? 0n : undefined),
];

/** What the control port shows beside: things that a router keeps to itself. */
export function hiddenDiskState(disk: Disk): Readonly<Record<string, Value>> {
  return { "attached-size": disk.attachedBytes, served: servedNqn(disk) ?? "" };
}

function percentUsed(sizeBytes: bigint, freeBytes: bigint | undefined): bigint | undefined {
  if (freeBytes === undefined || sizeBytes === 0n) return undefined;
  return (sizeBytes - freeBytes + sizeBytes / 200n) * 100n / sizeBytes;
}

function property(
  name: string,
  notation: Notation,
  read: (disk: Disk) => Value | undefined,
  told?: Told,
): ReadableProperty<Disk> {
  const own = (disk: Disk) => Object.hasOwn(disk.extra, name) ? disk.extra[name] : read(disk);
  return told === undefined ? { name, notation, read: own } : { name, notation, read: own, told };
}

function plain(name: string, read: (disk: Disk) => Value | undefined, told?: Told): ReadableProperty<Disk> {
  return property(name, "plain", read, told);
}

function quoted(name: string, read: (disk: Disk) => Value | undefined, told?: Told): ReadableProperty<Disk> {
  return property(name, "quoted", read, told);
}

function flag(name: string, read: (disk: Disk) => boolean, told?: Told): ReadableProperty<Disk> {
  return property(name, "flag", read, told);
}
