import { type Disk, type DiskSettings, parseId, settingsOf } from "../model/disk.ts";
import { addDisk, changeDisk, removeDisk } from "../model/disk_operations.ts";
import { formatDisk, readDeviceCount, readRaidType } from "../model/raid.ts";
import type { Router } from "../model/router.ts";
import { Refusal } from "../refusal.ts";
import { type Span, spanOf } from "../timing.ts";
import { diskProperties } from "./disk_properties.ts";
import { readPort, readSize, readYesNo } from "./inputs.ts";
import type { Menu, Property, Row, Values, Verb } from "./menu.ts";
import { byName, ItemRow, type ReadableProperty, tellingOf } from "./rows.ts";

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

/** Words that set something, and how they are read. Those of file disks and exports need `rose-storage`. */
const words: Readonly<Record<string, (text: string, name: string) => DiskSettings>> = {
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
  "raid-type": (text) => ({ raidType: readRaidType(text) }),
  "raid-device-count": (text) => ({ raidDevices: readDeviceCount(text) }),
  "raid-master": (text) => ({ raidMaster: text }),
  // Which place a drive has in its RAID says nothing here.
  "raid-role": () => ({}),
};

/** The word of `add` that takes another item's properties for whatever is not given. */
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

  words(verb: Verb): readonly string[] {
    if (verb === "format") return ["file-system"];
    const { rose, nqn } = this.#router.profile.vocabulary;
    const known = Object.keys(words).filter((word) =>
      (rose || !/^(nvme-tcp|file|raid)-/.test(word)) && (nqn || word !== "nvme-tcp-server-nqn")
    );
    return verb === "add" ? [...known, copyFrom] : known;
  }

  properties(): readonly Property[] {
    return diskProperties(this.#router);
  }

  rows(): readonly Row[] {
    return this.#rows(this.#router.disks.list());
  }

  lookup(property: string, text: string): readonly Row[] | undefined {
    if (property === "slot") return this.#rows(this.#present(this.#router.disks.findBySlot(text)));
    if (property === "file-path") return this.#rows(this.#router.disks.findByPath(text));
    if (property === ".id") return this.#rows(this.#present(this.#router.disks.get(parseId(text) ?? -1)));
    return undefined;
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
    formatDisk(this.#router, this.#disk(row), values.get("file-system"));
  }

  remove(row: Row): void {
    removeDisk(this.#router, this.#disk(row));
  }

  /** The one disk that an id or a slot names. */
  #named(text: string): Disk {
    const id = parseId(text);
    const disk = id === undefined ? this.#router.disks.findBySlot(text) : this.#router.disks.get(id);
    if (disk === undefined) throw id === undefined ? Refusal.noSuchItem() : Refusal.noSuchItemId();
    return disk;
  }

  /** The disk behind a row, if it is still there. */
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
    const told = { ...tellingOf(this.#router.knobs), extra: (disk: Disk) => disk.extra };
    return disks.map((disk) => new ItemRow(disk, properties, told));
  }
}

/** Reads the values of `add` and `set`. */
function readSettings(values: Values): DiskSettings {
  return Object.assign({}, ...[...values].map(([name, text]) => words[name]?.(text, name)));
}
