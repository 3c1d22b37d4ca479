import type { ForeignDisk, Pool, RouterState, StoredFile, StoredVolume } from "../volume/ports.ts";
import { parseRow, parseRows, type Row, unreadable } from "./json.ts";
import { imagePathOf } from "./queries.ts";
import { parseUptime } from "./uptime.ts";

/** The disks of a frame, sorted by what they are. */
export interface Disks {
  /** Every file-backed disk, ordered by id. */
  readonly volumes: readonly StoredVolume[];
  /** Every other disk. */
  readonly others: readonly ForeignDisk[];
  readonly pools: readonly Pool[];
}

/**
 * Reads a frame of disks.
 *
 * @throws {VolumeError} unavailable when a disk cannot be read, or two sit in one slot
 */
export function parseDisks(frame: string): Disks {
  const what = "list of disks";
  const volumes: StoredVolume[] = [];
  const others: ForeignDisk[] = [];
  const pools: Pool[] = [];
  const seen = new Set<string>();
  for (const row of parseRows(frame, what)) {
    const id = row.text("slot");
    const kind = row.text("type");
    if (seen.has(id)) throw unreadable(what, `it has two disks in one slot: slot=${id}`);
    seen.add(id);
    if (kind === "file") volumes.push(volumeOf(row, id));
    else others.push({ id, kind });
    const pool = poolOf(row);
    if (pool !== undefined) pools.push(pool);
  }
  return { volumes: sorted(volumes), others, pools };
}

/** Volumes in the order of their ids' code units: the same on every machine and in every locale. */
export function sorted(volumes: readonly StoredVolume[]): StoredVolume[] {
  return volumes.toSorted((a, b) => a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

function volumeOf(row: Row, id: string): StoredVolume {
  return {
    id,
    imagePath: imagePathOf(row.text("file-path")),
    // `size` is exact; `file-size` may be rounded (50.0GiB) and is read only where it is a whole number.
    sizeBytes: row.integer(!row.has("size") && row.hasInteger("file-size") ? "file-size" : "size"),
    exported: row.flag("nvme-tcp-export"),
    exportNqn: row.text("nvme-tcp-server-nqn", ""),
    exportPort: Number(row.integer("nvme-tcp-server-port", 0n)),
    comment: row.text("comment", ""),
  };
}

/**
 * A mounted disk as a pool. One that says nothing about its mount point or space (a network mount, say) is none: a
 * volume on it would be refused, and no other volume suffers for it.
 */
function poolOf(row: Row): Pool | undefined {
  if (!row.flag("mounted", false) || !row.has("size") || !row.has("free")) return undefined;
  const mountPoint = row.text("mount-point", "").replace(/^\/+|\/+$/g, "");
  if (mountPoint === "") return undefined;
  return {
    mountPoint,
    filesystem: row.text("fs", ""),
    sizeBytes: row.integer("size"),
    freeBytes: row.integer("free"),
  };
}

/**
 * Reads a frame of files, and keeps those of `paths`.
 *
 * @throws {VolumeError} unavailable when a file cannot be read
 */
export function parseFiles(frame: string, paths: readonly string[]): StoredFile[] {
  const wanted = new Set(paths.map(imagePathOf));
  const files: StoredFile[] = [];
  for (const row of parseRows(frame, "list of files")) {
    const path = imagePathOf(row.text("name"));
    if (!wanted.has(path)) continue;
    const directory = row.text("type") === "directory";
    files.push({ path, directory, sizeBytes: directory ? row.integer("size", 0n) : row.integer("size") });
  }
  return files;
}

/** The router's own row: version and uptime. */
export interface Resource {
  readonly row: Row;
  readonly upMs: RouterState["upMs"];
}

/**
 * Reads a frame of `/system resource print`.
 *
 * @throws {VolumeError} unavailable when it has no uptime in a form that is known
 */
export function parseResource(frame: string): Resource {
  const row = parseRow(frame, "system resource");
  const uptime = row.text("uptime");
  const upMs = parseUptime(uptime);
  if (upMs === undefined) {
    throw unreadable(
      "system resource",
      `its uptime has an unknown form: ${JSON.stringify(uptime.slice(0, 64))}`,
    );
  }
  return { row, upMs };
}
