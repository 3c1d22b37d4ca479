import { type Disk, type DiskSettings, parseId, servedNqn, settingsOf } from "../model/disk.ts";
import {
  addDisk,
  changeDisk,
  formatDisk,
  readDeviceCount,
  readRaidType,
  removeDisk,
} from "../model/disk_operations.ts";
import { isKnownName, knownOf, memberNames, smartNames } from "../model/drive_health.ts";
import type { Router } from "../model/router.ts";
import { Refusal } from "../refusal.ts";
import { type Span, spanOf } from "../timing.ts";
import { readPort, readSize, readYesNo } from "./inputs.ts";
import type { Menu, Property, Row, Values, Verb } from "./menu.ts";
import type { TextForm } from "../output/items.ts";
import { isSince } from "./versions.ts";
import { byName, ItemRow, type ReadableProperty, readOnlyOf, roundSize } from "./rows.ts";
import type { Value } from "../value.ts";

const verbs: readonly Verb[] = [
  "add",
  "set",
  "remove",
  "enable",
  "disable",
  "print",
  "find",
  "get",
  "format",
];

/** The properties that can be set, and how they are parsed. Those of file disks and exports need `rose-storage`. */
const setters: Readonly<Record<string, (text: string, name: string) => DiskSettings>> = {
  type: (text) => ({ type: text }),
  slot: (text) => ({ slot: text }),
  comment: (text) => ({ comment: text }),
  disabled: (text, name) => ({ disabled: readYesNo(name, text) }),
  "mount-filesystem": (text, name) => ({ mountFilesystem: readYesNo(name, text) }),
  "file-path": (text) => ({ filePath: text }),
  "file-size": (text, name) => ({ fileSizeBytes: readSize(name, text) }),
  "nvme-tcp-export": (text, name) => ({ exported: readYesNo(name, text) }),
  "nvme-tcp-server-port": (text, name) => ({ port: readPort(name, text) }),
  "nvme-tcp-server-nqn": (text) => ({ nqn: text }),
  "nvme-tcp-server-allow-host-name": (text) => ({ allowHostName: text }),
  "nfs-sharing": (text, name) => ({ nfsSharing: readYesNo(name, text) }),
  "smb-sharing": (text, name) => ({ smbSharing: readYesNo(name, text) }),
  "media-sharing": (text, name) => ({ mediaSharing: readYesNo(name, text) }),
  "raid-type": (text) => ({ raidType: readRaidType(text) }),
  "raid-device-count": (text) => ({ raidDevices: readDeviceCount(text) }),
  "raid-master": (text) => ({ raidMaster: text }),
  // A drive's position in its RAID has no meaning here.
  "raid-role": () => ({}),
};

/** The word of `add` that takes another item's properties for everything that is not given. */
const copyFrom = "copy-from";

/** `/disk`. */
export class DiskMenu implements Menu {
  readonly path = "disk";
  readonly single = false;
  readonly columns = ["slot", "model", "serial", "interface", "size", "free", "fs"];
  readonly #router: Router;

  constructor(router: Router) {
    this.#router = router;
  }

  verbs(): readonly Verb[] {
    return verbs;
  }

  texts(verb: Verb): readonly string[] {
    if (verb === "format") return ["file-system", "label"];
    const { rose } = this.#router.profile.vocabulary;
    const known = Object.keys(setters).filter((word) =>
      rose || !/^(nvme-tcp|file|raid|nfs|smb|media)-/.test(word)
    );
    return verb === "add" ? [...known, copyFrom] : known;
  }

  properties(): readonly Property[] {
    return diskProperties(this.#router);
  }

  textForm(): TextForm {
    const { version } = this.#router.profile;
    return { ...diskText, columns: isSince(version, 24) ? diskText.columns : this.columns };
  }

  rows(): readonly Row[] {
    return this.#rows(this.#router.disks.list());
  }

  lookup(property: string, text: string): readonly Row[] | undefined {
    if (property === "slot") return this.#rows(this.#present(this.#router.disks.findBySlot(text)));
    if (property === "file-path") return this.#rows(this.#router.disks.findByPath(text));
    // Only these disks have one.
    if (property === "fs-label" && text !== "") return this.#rows(this.#router.disks.special());
    if (property === ".id") return this.#rows(this.#present(this.#router.disks.get(parseId(text) ?? -1)));
    return undefined;
  }

  search(property: string, pattern: string): readonly Row[] | undefined {
    const disks = property === "file-path" ? this.#router.disks.findByPathPattern(pattern) : undefined;
    return disks === undefined ? undefined : this.#rows(disks);
  }

  flagged(property: string): readonly Row[] | undefined {
    return property === "mounted" ? this.#rows(this.#router.disks.special()) : undefined;
  }

  numberOf(row: Row): number {
    return this.#router.disks.numberOf(row.order);
  }

  byId(id: string): Row | undefined {
    return this.lookup(".id", id)?.[0];
  }

  byName(name: string): Row | undefined {
    return this.lookup("slot", name)?.[0];
  }

  span(verb: Verb, values: Values): Span {
    const size = values.get("file-size") ?? "";
    return spanOf(this.path, verb, /^[0-9]+$/.test(size) ? BigInt(size) : 0n);
  }

  add(values: Values): void {
    const from = values.get(copyFrom);
    const copied = from === undefined ? {} : settingsOf(this.#named(from));
    addDisk(this.#router, { ...copied, ...readSettings(values) });
  }

  set(row: Row, values: Values): void {
    changeDisk(this.#router, this.#disk(row), readSettings(values));
  }

  format(row: Row, values: Values): void {
    formatDisk(this.#router, this.#disk(row), values.get("file-system"), values.get("label"));
  }

  remove(row: Row): void {
    removeDisk(this.#router, this.#disk(row));
  }

  /** Returns the one disk that an id or a slot names. */
  #named(text: string): Disk {
    const id = parseId(text);
    const disk = id === undefined ? this.#router.disks.findBySlot(text) : this.#router.disks.get(id);
    if (disk === undefined) throw id === undefined ? Refusal.noSuchItem() : Refusal.noSuchItemId();
    return disk;
  }

  /** The disk of a row, if it still exists. */
  #disk(row: Row): Disk {
    const disk = this.#router.disks.get(row.order);
    if (disk === undefined) throw Refusal.noSuchItemId();
    return disk;
  }

  #present(disk: Disk | undefined): readonly Disk[] {
    return disk === undefined ? [] : [disk];
  }

  #rows(disks: readonly Disk[]): readonly Row[] {
    const properties: ReadonlyMap<string, ReadableProperty<Disk>> = byName(diskProperties(this.#router));
    const { behaviours } = this.#router;
    const reported = { ...readOnlyOf(behaviours), extra: (disk: Disk) => knownOf(disk.extra, behaviours) };
    return disks.map((disk) => new ItemRow(disk, properties, reported));
  }
}

/** Parses the values of `add` and `set`. */
function readSettings(values: Values): DiskSettings {
  return Object.assign({}, ...[...values].map(([name, text]) => setters[name]?.(text, name)));
}

type Reported = (disk: Disk) => boolean;

const never: Reported = () => false;
const isFile: Reported = (disk) => disk.filePath !== "";
const isMember: Reported = (disk) => disk.raidMaster !== "none";
const isExport: Reported = (disk) => isFile(disk) || disk.exported;

/** Properties of a disk. */
function diskProperties(router: Router): readonly ReadableProperty<Disk>[] {
  return [
    ...flagProperties,
    plain("type", (disk) => disk.type),
    plain("slot", (disk) => disk.slot),
    plain("comment", (disk) => disk.comment === "" ? undefined : disk.comment),
    plain("slot-default", (disk) => disk.type === "hardware" ? disk.slot : "", never),
    plain("parent", () => "", never),
    plain("fs-label", (disk) => disk.pool?.label),
    seeded("fs-uuid"),
    plain("fs", (disk) => disk.pool === undefined ? "-" : router.filesystemOf(disk.pool)),
    ...descriptionProperties,
    ...spaceProperties(router),
    plain("mount-filesystem", (disk) => disk.mountFilesystem, isFile),
    plain("mount-read-only", () => false, never),
    plain("compress", () => false, never),
    plain("sector-size", () => 512n, isFile),
    ...arrayProperties,
    ...smartNames.map(seeded),
    ...(router.profile.vocabulary.rose ? [...exportProperties, ...fileProperties] : []),
  ].filter(({ name }) => isKnownName(name, router.behaviours));
}

/** Properties of an array; what only nested ones have comes with the item. */
const arrayProperties: readonly ReadableProperty<Disk>[] = [
  ...["raid-type", "raid-device-count", "raid-max-component-size", "raid-chunk-size"].map(seeded),
  plain("raid-master", (disk) => disk.raidMaster, isMember),
  ...memberNames.map(seeded),
  plain("state", (disk) => disk.pool?.state),
  seeded("raid-uuid"),
];

const flagProperties: readonly ReadableProperty<Disk>[] = [
  ...["swap-enabled", "guid-partition-table", "partition"].map((name) => flag(name, () => false)),
  flag("disabled", (disk) => disk.disabled),
  flag("block-device", (disk) => !disk.disabled),
  flag("mounted", (disk) => disk.pool?.mounted ?? false),
  flag("raid-member", isMember, isMember),
];

const descriptionProperties: readonly ReadableProperty<Disk>[] = [
  plain("model", (disk) => disk.model === "" ? undefined : disk.model, (disk) => disk.pool === undefined),
  plain("serial", (disk) => disk.serial === "" ? undefined : disk.serial),
  plain("interface", (disk) => disk.interface === "" ? undefined : disk.interface),
  plain("size", (disk) => disk.sizeUnprinted ? undefined : disk.sizeBytes),
];

function spaceProperties(router: Router): readonly ReadableProperty<Disk>[] {
  const free = (disk: Disk) => {
    if (!disk.pool?.mounted) return undefined;
    const bytes = router.freeBytes({ ...disk, pool: disk.pool });
    return bytes - bytes % BigInt(router.behaviours.freeStep);
  };
  return [
    plain("free", free),
    seeded("total-inodes"),
    seeded("free-inodes"),
    plain("use", (disk) => percentUsed(disk.sizeBytes, free(disk))),
    plain("mount-point", (disk) => disk.pool?.mounted ? disk.pool.mountPoint : undefined),
  ];
}

const known = (disk: Disk, value: Value) => disk.port === undefined ? undefined : value;

const exportProperties: readonly ReadableProperty<Disk>[] = [
  plain("nvme-tcp-export", (disk) => disk.exported, isExport),
  plain("nvme-tcp-server-port", (disk) => known(disk, BigInt(disk.port ?? 0))),
  plain("nvme-tcp-server-nqn", (disk) => disk.nqn),
  plain("nvme-tcp-server-allow-host-name", (disk) => known(disk, disk.allowHostName)),
  plain("iscsi-export", () => false, never),
  plain("nfs-sharing", (disk) => disk.nfsSharing, (disk) => disk.nfsSharing),
  plain("smb-sharing", (disk) => disk.smbSharing, (disk) => disk.smbSharing),
  plain("media-sharing", (disk) => disk.mediaSharing, (disk) => disk.mediaSharing),
  plain("media-interface", () => "none", never),
  plain("swap", () => false, never),
];

function fileSizeOf(disk: Disk): Value | undefined {
  if (!isFile(disk)) return undefined;
  return disk.sizeUnprinted ? roundSize(disk.fileSizeBytes) : disk.fileSizeBytes;
}

const fileProperties: readonly ReadableProperty<Disk>[] = [
  plain("file-path", (disk) => isFile(disk) ? disk.filePath : undefined),
  plain("file-size", fileSizeOf),
  plain("file-offset", (disk) => isFile(disk) ? 0n : undefined),
];

/** `/disk print` of RouterOS 7.24. */
const diskText: TextForm = {
  flags: [
    [{ letter: "X", word: "DISABLED", property: "disabled" }],
    [{ letter: "B", word: "BLOCK-DEVICE", property: "block-device" }],
    [
      { letter: "M", word: "MOUNTED", property: "mounted" },
      { letter: "S", word: "SWAP-ENABLED", property: "swap-enabled" },
    ],
    [
      { letter: "g", word: "GUID-PARTITION-TABLE", property: "guid-partition-table" },
      { letter: "p", word: "PARTITION", property: "partition" },
    ],
    [{ letter: "r", word: "RAID-MEMBER", property: "raid-member" }],
    [{ letter: "t", word: "NVME-TCP-EXPORT", property: "nvme-tcp-export" }],
  ],
  columns: ["slot", "mount-point", "model", "interface", "size", "fs"],
  quoted: new Set([
    ...["slot", "comment", "slot-default", "parent", "fs-label", "fs-uuid", "model", "serial", "interface"],
    ...["mount-point", "raid-member-state", "state", "raid-uuid"],
    ...["nvme-tcp-server-nqn", "nvme-tcp-server-allow-host-name"],
  ]),
  grouped: new Set(["size", "free", "total-inodes", "free-inodes"]),
  write(name, value) {
    if (typeof value !== "bigint") return undefined;
    if (name === "use") return `${value}%`;
    return name === "file-size" ? roundSize(value) : undefined;
  },
};

/** Properties that only the control port shows, and a router does not. */
export function hiddenDiskState(disk: Disk): Readonly<Record<string, Value>> {
  return { "attached-size": disk.attachedBytes, served: servedNqn(disk) ?? "" };
}

function percentUsed(sizeBytes: bigint, freeBytes: bigint | undefined): bigint | undefined {
  if (freeBytes === undefined || sizeBytes === 0n) return undefined;
  return (sizeBytes - freeBytes + sizeBytes / 200n) * 100n / sizeBytes;
}

function plain(
  name: string,
  read: (disk: Disk) => Value | undefined,
  reported?: Reported,
): ReadableProperty<Disk> {
  const own = (disk: Disk) => Object.hasOwn(disk.extra, name) ? disk.extra[name] : read(disk);
  return reported === undefined ? { name, read: own } : { name, read: own, reported };
}

/** A property that only some items have. */
function seeded(name: string): ReadableProperty<Disk> {
  return plain(name, () => undefined);
}

function flag(name: string, read: (disk: Disk) => boolean, reported?: Reported): ReadableProperty<Disk> {
  return { ...plain(name, read, reported), isFlag: true };
}
