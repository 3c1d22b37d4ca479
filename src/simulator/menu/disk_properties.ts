import { type Disk, servedNqn } from "../model/disk.ts";
import type { Router } from "../model/router.ts";
import type { Value } from "../value.ts";
import type { ReadableProperty } from "./rows.ts";

type Told = (disk: Disk) => boolean;

const never: Told = () => false;
const isFile: Told = (disk) => disk.filePath !== "";
const isMember: Told = (disk) => disk.raidMaster !== "none";
const isExport: Told = (disk) => isFile(disk) || disk.exported;

/** Properties of a disk. */
export function diskProperties(router: Router): readonly ReadableProperty<Disk>[] {
  return [
    ...flagProperties,
    plain("type", (disk) => disk.type),
    plain("slot", (disk) => disk.slot),
    plain("comment", (disk) => disk.comment === "" ? undefined : disk.comment),
    plain("slot-default", (disk) => disk.type === "hardware" ? disk.slot : "", never),
    plain("parent", () => "", never),
    plain("fs-label", (disk) => disk.pool?.label),
    plain("fs", (disk) => disk.pool === undefined ? "-" : router.filesystemOf(disk.pool)),
    ...descriptionProperties,
    ...spaceProperties(router),
    plain("mount-filesystem", (disk) => disk.mountFilesystem, isFile),
    plain("mount-read-only", () => false, never),
    plain("compress", () => false, never),
    plain("sector-size", () => 512n, isFile),
    plain("raid-master", (disk) => disk.raidMaster, isMember),
    plain("state", (disk) => disk.pool?.state),
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
  plain("model", (disk) => disk.model === "" ? undefined : disk.model, (disk) => disk.pool === undefined),
  plain("serial", (disk) => disk.serial === "" ? undefined : disk.serial),
  plain("interface", (disk) => disk.interface === "" ? undefined : disk.interface),
  plain("size", (disk) => disk.sizeBytes),
];

function spaceProperties(router: Router): readonly ReadableProperty<Disk>[] {
  const free = (disk: Disk) =>
    disk.pool?.mounted ? router.freeBytes({ ...disk, pool: disk.pool }) : undefined;
  return [
    plain("free", free),
    plain("use", (disk) => percentUsed(disk.sizeBytes, free(disk))),
    plain("mount-point", (disk) => disk.pool?.mounted ? disk.pool.mountPoint : undefined),
  ];
}

function exportProperties(hasNqn: boolean): readonly ReadableProperty<Disk>[] {
  const known = (disk: Disk, value: Value) => disk.port === undefined ? undefined : value;
  return [
    plain("nvme-tcp-export", (disk) => disk.exported, isExport),
    plain("nvme-tcp-server-port", (disk) => known(disk, BigInt(disk.port ?? 0))),
    ...(hasNqn ? [plain("nvme-tcp-server-nqn", (disk) => disk.nqn)] : []),
    plain("nvme-tcp-server-allow-host-name", (disk) => known(disk, disk.allowHostName)),
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
  plain("file-size", (disk) => isFile(disk) ? disk.fileSizeBytes : undefined),
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

function plain(name: string, read: (disk: Disk) => Value | undefined, told?: Told): ReadableProperty<Disk> {
  const own = (disk: Disk) => Object.hasOwn(disk.extra, name) ? disk.extra[name] : read(disk);
  return told === undefined ? { name, read: own } : { name, read: own, told };
}

function flag(name: string, read: (disk: Disk) => boolean, told?: Told): ReadableProperty<Disk> {
  return { ...plain(name, read, told), isFlag: true };
}
