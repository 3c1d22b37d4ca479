import type { Disk } from "../model/disk.ts";
import { parentOf } from "../model/paths.ts";
import type { Router } from "../model/router.ts";
import type { Simulation } from "../simulation.ts";
import { readDiskChanges, readNewDisk } from "./disk_body.ts";
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
} from "./request.ts";
import type { Route } from "./routes.ts";

/** Changing the router behind its client's back. None of this asks what a router would allow. */
export const editRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "disks",
    named: false,
    what: "Adds a disk of any kind, by the router's names of its properties, and its file unless `?file=no`.",
    handle: addDisk,
  },
  {
    method: "PATCH",
    path: "disks",
    named: true,
    what:
      "Edits a disk by its slot. A pool takes `free`, `state`, `mounted`, `vanish` (its disks go with it), " +
      "`fs-label`, `pool-fs`, `mount-point` too.",
    handle: editDisk,
  },
  { method: "POST", path: "disks", named: true, what: "The same.", handle: editDisk },
  {
    method: "DELETE",
    path: "disks",
    named: true,
    what: "Takes a disk's entry away; its file stays.",
    handle: deleteDisk,
  },
  {
    method: "POST",
    path: "files",
    named: false,
    what:
      "Makes a file or a directory: `name`, `type`, `size`, `contents`, `written` (bytes that take space).",
    handle: addFile,
  },
  {
    method: "DELETE",
    path: "files",
    named: false,
    what: "Takes away the file or directory of `?name=`; a disk that uses it stays.",
    handle: deleteFile,
  },
  { method: "DELETE", path: "files", named: true, what: "The same.", handle: deleteFile },
];

/** Adds a disk of any kind. Its file is made too, unless the query says `file=no`. */
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

function deleteDisk(_request: Request, { router }: Simulation, slot: string): Response {
  const disk = router.disks.findBySlot(slot);
  if (disk === undefined) throw new NotFound(`There is no disk ${slot}.`);
  router.disks.remove(disk.id);
  return json({});
}

/** Makes a file or a directory, with everything above it; `written` says how much of it takes space. */
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

function deleteFile(request: Request, { router }: Simulation, name: string): Response {
  const asked = name === "" ? new URL(request.url).searchParams.get("name") ?? "" : name;
  const path = readPath(asked);
  if (router.files.find(path) === undefined) throw new NotFound(`There is no file ${path}.`);
  router.files.remove(path);
  return json({});
}

/** A pool gets the free space asked for by way of what else is on it. */
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
