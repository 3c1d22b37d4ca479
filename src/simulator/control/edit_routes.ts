import { type Disk, plainDisk } from "../model/disk.ts";
import { normalisePath, parentOf } from "../model/paths.ts";
import type { Router } from "../model/router.ts";
import {
  assertOnly,
  BadRequest,
  json,
  type JsonObject,
  NotFound,
  readCount,
  readObject,
  readPath,
  readText,
  type Routes,
  type Simulation,
} from "./request.ts";
import { filesystemNames } from "../menu/filesystem_menu.ts";
import { Refusal } from "../refusal.ts";
import type { Value } from "../value.ts";

/** Changes the router without its client. Nothing here checks what a router would allow. */
export const editRoutes: Routes = {
  "POST /disks": {
    what: "Adds a disk of any kind, by the router's names of its properties, and its file unless `?file=no`.",
    handle: addDisk,
  },
  "PATCH /disks/…": {
    what:
      "Edits a disk by its slot. A pool takes `free`, `state`, `mounted`, `vanish` (its disks go with it), " +
      "`fs-label`, `pool-fs`, `mount-point` too; a file disk `fs-label` and `pool-fs`, as its content has them, and `size-unprinted`.",
    handle: editDisk,
  },
  "DELETE /disks/…": {
    what: "Takes a disk's entry away; its file stays.",
    handle: deleteDisk,
  },
  "PATCH /filesystems/…": {
    what: "Edits a Btrfs pool in `/disk/btrfs/filesystem` by its label: `devs` (`missing` for a lost one), " +
      "`missing-devs`, `write-errors` (one a device) and its neighbours, `scrubbing`, `scrub-status` and theirs.",
    handle: editFilesystem,
  },
  "POST /files": {
    what:
      "Makes a file or a directory: `name`, `type`, `size`, `contents`, `written` (bytes that take space).",
    handle: addFile,
  },
  "DELETE /files/…": {
    what: "Takes away a file or a directory; a disk that uses it stays.",
    handle: deleteFile,
  },
};

/** Adds a disk of any kind, and its file, unless the query says `file=no`. */
async function addDisk(request: Request, simulation: Simulation): Promise<Response> {
  const { router } = simulation;
  const draft = readNewDisk(await readObject(request));
  if (router.disks.isTaken(draft.slot)) throw new BadRequest(`There is a disk ${draft.slot} already.`);
  const path = draft.filePath.slice(1);
  const withFile = new URL(request.url).searchParams.get("file") !== "no";
  if (path !== "" && withFile && router.files.find(path) === undefined) {
    makeParents(router, path);
    router.files.create(path, draft.sizeBytes);
  }
  router.disks.add(draft);
  return shownDisk(simulation, draft.slot, 201);
}

async function editDisk(request: Request, simulation: Simulation, slot: string): Promise<Response> {
  const { router } = simulation;
  const { disks } = router;
  const disk = disks.findBySlot(slot);
  if (disk === undefined) throw new NotFound(`There is no disk ${slot}.`);
  const body = await readObject(request);
  const changed = withFree(router, readDiskChanges(body, disk), body);
  if (changed.slot !== slot && disks.isTaken(changed.slot)) {
    throw new BadRequest(`There is a disk ${changed.slot} already.`);
  }
  disks.replace(changed);
  return shownDisk(simulation, changed.slot, 200);
}

/** Edits what is shown of a Btrfs file system; `null` takes an edit back. */
async function editFilesystem(
  request: Request,
  { router, menus }: Simulation,
  label: string,
): Promise<Response> {
  const menu = menus.get("disk/btrfs/filesystem");
  if (menu?.byName(label) === undefined) {
    throw new NotFound(`There is no Btrfs pool with the label ${label}.`);
  }
  const body = await readObject(request);
  assertOnly(body, filesystemNames);
  const edited: Record<string, Value> = { ...router.filesystems.get(label) };
  for (const [name, value] of Object.entries(body)) {
    if (value === null) delete edited[name];
    else edited[name] = plainValue(value, name);
  }
  router.filesystems.set(label, edited);
  return json(menu.byName(label)?.asValue());
}

function deleteDisk(_request: Request, { router }: Simulation, slot: string): Response {
  const disk = router.disks.findBySlot(slot);
  if (disk === undefined) throw new NotFound(`There is no disk ${slot}.`);
  router.disks.remove(disk.id);
  return json({});
}

/** Makes a file or a directory, with its parents; `written` says how much of it takes space. */
async function addFile(request: Request, { router, menus }: Simulation): Promise<Response> {
  const body = await readObject(request);
  assertOnly(body, ["name", "type", "size", "contents", "written"]);
  const path = readPath(readText(body, "name"));
  const type = readText(body, "type", "file");
  const contents = readText(body, "contents", "");
  const size = readCount(body, "size", 0, contents.length);
  const written = readCount(body, "written", 0, 0);
  if (router.files.find(path) !== undefined) throw new BadRequest(`There is a file ${path} already.`);
  if (type !== "file" && type !== "directory") throw new BadRequest("type must be file or directory.");
  if (type === "directory") router.files.makeDirectories(path);
  if (type === "file") {
    makeParents(router, path);
    router.files.create(path, BigInt(size), contents);
    router.backing.pretendWritten?.(path, BigInt(written));
  }
  return json(menus.get("file")?.byName(path)?.asValue(), 201);
}

function deleteFile(_request: Request, { router }: Simulation, name: string): Response {
  const path = readPath(name);
  if (router.files.find(path) === undefined) throw new NotFound(`There is no file ${path}.`);
  router.files.remove(path);
  return json({});
}

/** Gives a pool the requested free space by adjusting what else is on it. */
function withFree(router: Router, disk: Disk, body: JsonObject): Disk {
  if (body["free"] === undefined) return disk;
  if (disk.pool === undefined) {
    throw new BadRequest(`The disk ${disk.slot} is no pool: it has no free space.`);
  }
  const more = router.freeBytes({ ...disk, pool: disk.pool }) - BigInt(readCount(body, "free", 0, 0));
  return { ...disk, pool: { ...disk.pool, otherBytes: disk.pool.otherBytes + more } };
}

function shownDisk({ menus }: Simulation, slot: string, status: number): Response {
  return json(menus.get("disk")?.byName(slot)?.asValue(), status);
}

function makeParents(router: Router, path: string): void {
  const parent = parentOf(path);
  if (parent !== "") router.files.makeDirectories(parent);
}

/** A disk whose id is not chosen yet. */
type Draft = Omit<Disk, "id">;
type Reader = (value: unknown, name: string) => Partial<Draft>;

/** Properties of the model, by the router's names. */
const readers: Readonly<Record<string, Reader>> = {
  slot: (value, name) => ({ slot: textOf(value, name) }),
  type: (value, name) => ({ type: textOf(value, name) }),
  comment: (value, name) => ({ comment: textOf(value, name) }),
  model: (value, name) => ({ model: textOf(value, name) }),
  serial: (value, name) => ({ serial: textOf(value, name) }),
  interface: (value, name) => ({ interface: textOf(value, name) }),
  "raid-master": (value, name) => ({ raidMaster: textOf(value, name) }),
  disabled: (value, name) => ({ disabled: yesNo(value, name) }),
  size: (value, name) => ({ sizeBytes: bytes(value, name) }),
  "attached-size": (value, name) => ({ attachedBytes: bytes(value, name) }),
  "file-path": (value, name) => ({ filePath: filePath(textOf(value, name)) }),
  "file-size": (value, name) => ({ fileSizeBytes: bytes(value, name) }),
  "size-unprinted": (value, name) => ({ sizeUnprinted: yesNo(value, name) }),
  "mount-filesystem": (value, name) => ({ mountFilesystem: yesNo(value, name) }),
  "nvme-tcp-export": (value, name) => ({ exported: yesNo(value, name) }),
  "nvme-tcp-server-port": (value, name) => ({ port: Number(bytes(value, name)) }),
  "nvme-tcp-server-nqn": (value, name) => ({ nqn: textOf(value, name) }),
  "nvme-tcp-server-allow-host-name": (value, name) => ({ allowHostName: textOf(value, name) }),
};

/** Properties of a pool, which are read into the disk's pool. */
const poolProperties = ["mounted", "mount-point", "fs-label", "pool-fs", "state", "vanish"];
/** Properties that the simulator computes, and that cannot be set. */
const readOnly = [".id", "block-device", "served", "fs", "free", "use", "sector-size", "file-offset"];

/**
 * Reads a new disk. Missing sizes follow from given ones; an unknown property is kept and shown unchanged.
 *
 * @throws {BadRequest} when a property has the wrong type, or the slot is missing.
 */
function readNewDisk(body: JsonObject): Draft {
  const given = readFields(body);
  if (given.slot === undefined || given.slot === "") throw new BadRequest("slot must be given.");
  const sizeBytes = given.sizeBytes ?? given.fileSizeBytes ?? 0n;
  const isFile = given.filePath !== undefined;
  const draft: Draft = {
    ...plainDisk,
    type: isFile ? "file" : plainDisk.type,
    sizeBytes,
    attachedBytes: sizeBytes,
    fileSizeBytes: isFile ? sizeBytes : 0n,
    model: given.filePath ?? "",
    ...given,
    slot: given.slot,
    extra: readExtra(body, {}),
  };
  return completeExport(readPool(body, draft));
}

/**
 * Reads changes of a disk; `null` removes an unknown property.
 *
 * @throws {BadRequest} when a property has the wrong type.
 */
function readDiskChanges(body: JsonObject, disk: Disk): Disk {
  const changed = { ...disk, ...readFields(body), extra: readExtra(body, disk.extra) };
  return { ...completeExport(readPool(body, changed)), id: disk.id };
}

function readFields(body: JsonObject): Partial<Draft> {
  const known = Object.entries(body).filter(([name]) => Object.hasOwn(readers, name));
  return Object.assign({}, ...known.map(([name, value]) => readers[name]?.(value, name)));
}

function readExtra(body: JsonObject, before: Disk["extra"]): Disk["extra"] {
  const extra: Record<string, Value> = { ...before };
  for (const [name, value] of Object.entries(body)) {
    const isKnown = Object.hasOwn(readers, name) || poolProperties.includes(name) || readOnly.includes(name);
    if (isKnown) continue;
    if (value === null) delete extra[name];
    else extra[name] = plainValue(value, name);
  }
  return extra;
}

function readPool(body: JsonObject, disk: Draft): Draft {
  const given = poolProperties.filter((name) => body[name] !== undefined);
  if (given.length === 0) return disk;
  // An array has a state without being a pool.
  if (disk.pool === undefined && given.join() === "state") {
    return { ...disk, extra: { ...disk.extra, state: stateOf(body["state"]) } };
  }
  const before = disk.pool ??
    {
      mountPoint: disk.slot,
      label: `${disk.slot}-fs`,
      filesystem: undefined,
      // A file system in a volume is visible, and not mounted unless the request says so.
      mounted: disk.filePath === "" || body["mount-point"] !== undefined,
      disksVanish: false,
      state: "clean",
      otherBytes: 0n,
    };
  return {
    ...disk,
    pool: {
      ...before,
      mounted: yesNo(body["mounted"] ?? before.mounted, "mounted"),
      mountPoint: textOf(body["mount-point"] ?? before.mountPoint, "mount-point"),
      filesystem: filesystem(body["pool-fs"], before.filesystem),
      disksVanish: yesNo(body["vanish"] ?? before.disksVanish, "vanish"),
      label: textOf(body["fs-label"] ?? before.label, "fs-label"),
      state: stateOf(body["state"] ?? before.state),
    },
  };
}

/** An export needs a port and an NQN; the router would fill them in. */
function completeExport<Some extends Draft>(disk: Some): Some {
  if (!disk.exported) return disk;
  return { ...disk, port: disk.port ?? 4420, nqn: disk.nqn ?? `nqn.2000-02.com.mikrotik:${disk.slot}` };
}

function filePath(path: string): string {
  try {
    return `/${normalisePath(path)}`;
  } catch (error) {
    if (error instanceof Refusal) throw new BadRequest(`file-path is no path: ${path}`);
    throw error;
  }
}

function filesystem(value: unknown, before: "btrfs" | "xfs" | undefined): "btrfs" | "xfs" | undefined {
  if (value === undefined || value === "btrfs" || value === "xfs") return value ?? before;
  throw new BadRequest("pool-fs must be btrfs or xfs.");
}

/** An array has several states at once, such as clean and syncing: one text, with commas. */
function stateOf(value: unknown): string {
  return Array.isArray(value)
    ? value.map((part) => textOf(part, "state")).join(", ")
    : textOf(value, "state");
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== "string") throw new BadRequest(`${name} must be a text.`);
  return value;
}

function yesNo(value: unknown, name: string): boolean {
  if (value === true || value === "yes") return true;
  if (value === false || value === "no") return false;
  throw new BadRequest(`${name} must be true or false.`);
}

function bytes(value: unknown, name: string): bigint {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  if (typeof value === "string" && /^[0-9]{1,19}$/.test(value)) return BigInt(value);
  throw new BadRequest(`${name} must be a whole number, not negative.`);
}

function plainValue(value: unknown, name: string): Value {
  if (Array.isArray(value)) return value.map((part) => plainValue(part, name));
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  throw new BadRequest(`${name} must be a text, a whole number, true or false, or a list of them.`);
}
