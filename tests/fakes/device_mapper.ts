import { FakeKernelFiles } from "./kernel_files.ts";
import type { RecordedRun, Scripted } from "./processes.ts";

/** A map of the fake kernel. */
interface FakeMap {
  readonly minor: number;
  readonly uuid: string;
  /** Writes that have ended, and that wait. */
  completed?: number;
  pending?: number;
  table?: FakeTable;
  /** Loaded, and not active yet. */
  inactive?: FakeTable;
}

interface FakeTable {
  readonly sectors: string;
  readonly path: string;
  queues: boolean;
  failed: boolean;
  /** The part of a table of dm-crypt that follows the target's name. */
  crypt?: string;
}

/** The result of a write. */
export type FakeWrite = "done" | "waits" | "fails";

const tableForm =
  /^0 ([0-9]+) multipath 3 queue_if_no_path queue_mode bio 0 1 1 round-robin 0 1 1 ([0-9:]+) 1$/;

/** The kernel's device mapper behind dmsetup(8): maps that queue, fail, and are busy while they are open. */
export class FakeDeviceMapper {
  readonly maps = new Map<string, FakeMap>();
  /** Numbers of the devices that exist. */
  readonly devices = new Set<string>();
  /** Names of maps that are open or mounted. */
  readonly open = new Set<string>();
  /** Names of maps that are to go as soon as they are closed. */
  readonly deferred = new Set<string>();
  /** Whether the kernel has the target. */
  hasMultipath = true;
  readonly #files: FakeKernelFiles;
  #minor = 0;

  constructor(files: FakeKernelFiles) {
    this.#files = files;
    this.show();
  }

  /** Runs one command of dmsetup. */
  run({ options: { args } }: RecordedRun): Scripted {
    const [command, ...rest] = args;
    const uuid = command === "create" ? undefined : rest[rest.indexOf("--uuid") + 1];
    const name = [...this.maps].find(([, map]) => map.uuid === uuid)?.[0];
    try {
      return this.#command(command!, name === undefined ? undefined : this.maps.get(name), name, rest);
    } finally {
      this.show();
    }
  }

  /** Writes once through a map, as a file system does. */
  write(name: string): FakeWrite {
    const map = this.maps.get(name)!;
    const { table } = map;
    if (table === undefined) return "fails";
    if (!this.devices.has(table.path)) table.failed = true;
    const waits = table.failed && table.queues;
    map.pending = waits ? 1 : 0;
    map.completed = (map.completed ?? 0) + (waits ? 0 : 1);
    this.show();
    return waits ? "waits" : table.failed ? "fails" : "done";
  }

  #command(
    command: string,
    map: FakeMap | undefined,
    name: string | undefined,
    rest: readonly string[],
  ): Scripted {
    if (command === "target-version") return this.hasMultipath ? 0 : { code: 1, stderr: "unknown target" };
    if (command === "create") return this.#create(rest);
    if (map === undefined) return { code: 1, stderr: "No such device or address" };
    switch (command) {
      case "load": {
        const table = this.#parse(rest);
        if (table === undefined) return { code: 1, stderr: "Invalid argument" };
        map.inactive = table;
        return 0;
      }
      case "clear":
        delete map.inactive;
        return 0;
      case "resume":
        if (map.inactive !== undefined) map.table = map.inactive;
        delete map.inactive;
        return 0;
      case "message":
        if (rest.includes("fail_path")) map.table!.failed = rest.at(-1) === map.table!.path;
        else map.table!.queues = false;
        return 0;
      case "table":
        return { stdout: map.table === undefined ? "" : `${textOf(map.table)}\n` };
      case "status":
        return { stdout: map.table === undefined ? "" : `${this.#status(map.table)}\n` };
      case "remove":
        if (this.open.has(name!)) {
          if (rest.includes("--deferred")) {
            this.deferred.add(name!);
            return 0;
          }
          return { code: 1, stderr: `remove ioctl on ${name} failed: Device or resource busy` };
        }
        this.maps.delete(name!);
        return 0;
    }
    return { code: 1, stderr: `Unknown command ${command}` };
  }

  #create(rest: readonly string[]): Scripted {
    const [name, , uuid] = rest;
    if (this.maps.has(name!)) return { code: 1, stderr: "Device or resource busy" };
    const table = this.#parse(rest);
    if (table === undefined) return { code: 1, stderr: "Invalid argument" };
    this.maps.set(name!, { minor: this.#minor++, uuid: uuid!, table });
    return 0;
  }

  /** Undefined when the kernel refuses it: no such target, or no such device. */
  #parse(rest: readonly string[]): FakeTable | undefined {
    const [, sectors, path] = tableForm.exec(rest[rest.indexOf("--table") + 1]!) ?? [];
    if (!this.hasMultipath || path === undefined || !this.devices.has(path)) return undefined;
    return { sectors: sectors!, path, queues: true, failed: false };
  }

  #status({ sectors, path, failed }: FakeTable): string {
    return `0 ${sectors} multipath 2 0 0 0 1 1 ${failed ? "E" : "A"} 0 1 0 ${path} ${failed ? "F" : "A"} 0`;
  }

  /** The kernel removes what was to be removed and is closed by now. */
  removeDeferred(): void {
    for (const name of this.deferred) {
      if (this.open.has(name)) continue;
      this.maps.delete(name);
      this.deferred.delete(name);
    }
  }

  /** Shows all maps in /sys. */
  show(): void {
    for (const key of [...this.#files.texts.keys()].filter((key) => key.startsWith("/sys/block/dm-"))) {
      this.#files.texts.delete(key);
    }
    const others = (this.#files.folders.get("/sys/block") ?? []).filter((name) => !name.startsWith("dm-"));
    const own = [...this.maps.values()].map(({ minor }) => `dm-${minor}`);
    this.#files.folders.set("/sys/block", [...others, ...own]);
    for (const [name, map] of this.maps) this.#showMap(name, map);
  }

  #showMap(name: string, { minor, uuid, table, inactive, pending = 0, completed = 0 }: FakeMap): void {
    const folder = `/sys/block/dm-${minor}`;
    const set = (attribute: string, text: string) => this.#files.texts.set(`${folder}/${attribute}`, text);
    set("dm/name", name);
    set("dm/uuid", uuid);
    set("dm/suspended", "0");
    set("dev", `253:${minor}`);
    set("stat", `0 0 0 0 ${completed} 0 0 0 ${pending} 0 0 0 0 0 0 0 0`);
    set("size", table?.sectors ?? "0");
    const below = [...new Set([table, inactive].flatMap((each) => each === undefined ? [] : [each.path]))];
    this.#files.folders.set(`${folder}/slaves`, below.map((path) => `device-${path}`));
    for (const path of below) if (this.devices.has(path)) set(`slaves/device-${path}/dev`, path);
    this.#files.nodes.set(`/dev/dm-${minor}`, { kind: "block", deviceNumber: `253:${minor}` });
  }
}

function textOf({ sectors, path, queues, crypt }: FakeTable): string {
  if (crypt !== undefined) return `0 ${sectors} crypt ${crypt}`;
  // The kernel keeps a hardware handler in any case.
  const own = "retain_attached_hw_handler queue_mode bio";
  const features = queues ? `4 queue_if_no_path ${own}` : `3 ${own}`;
  return `0 ${sectors} multipath ${features} 0 1 1 round-robin 0 1 1 ${path} 1`;
}
