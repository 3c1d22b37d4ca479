import type {
  ForeignDisk,
  Pool,
  RouterState,
  StoredFile,
  StoredSubvolume,
  StoredVolume,
  SubvolumeRef,
} from "../../volume/ports/ports.ts";
import { isSendable } from "../console/command.ts";
import { lastSegment } from "../console/conditions.ts";
import { parseRow, parseRows, type Row, unreadable } from "../console/json.ts";
import { imagePathOf } from "./queries.ts";
import { disksUpon, routerUses } from "./router_uses.ts";
import { parseUptime } from "../console/uptime.ts";
import type { RouterWords } from "../console/version.ts";

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
export function parseDisks(frame: string, router: RouterWords): Disks {
  const what = "list of disks";
  const volumes: StoredVolume[] = [];
  const others: ForeignDisk[] = [];
  const pools: Pool[] = [];
  const seen = new Set<string>();
  const rows = parseRows(frame, what);
  const upon = disksUpon(rows);
  for (const row of rows) {
    const id = row.text("slot");
    const kind = row.text("type");
    if (seen.has(id)) throw unreadable(what, `it has two disks in one slot: slot=${id}`);
    seen.add(id);
    if (kind === "file") volumes.push(volumeOf(row, id, router, upon.get(id) ?? []));
    else others.push({ id, kind });
    const pool = poolOf(row, router);
    if (pool !== undefined) pools.push(pool);
  }
  return { volumes: sorted(volumes), others, pools: withOwnLabels(pools) };
}

/** Volumes in the order of their ids' code units: the same on every machine and in every locale. */
export function sorted(volumes: readonly StoredVolume[]): StoredVolume[] {
  return volumes.toSorted((a, b) => a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

function volumeOf(row: Row, id: string, router: RouterWords, upon: readonly string[]): StoredVolume {
  const exported = row.flag("nvme-tcp-export");
  const uses = routerUses(row, upon);
  const hosts = row.words("nvme-tcp-server-allow-host-name");
  return {
    id,
    imagePath: imagePathOf(row.text("file-path")),
    // `size` is exact; `file-size` may be rounded (50.0GiB) and is read only where it is a whole number.
    sizeBytes: row.integer(!row.has("size") && row.hasInteger("file-size") ? "file-size" : "size"),
    exported,
    // Where an export cannot be given a name it has that of its slot.
    exportNqn: row.text("nvme-tcp-server-nqn", exported && !router.supportsNqn ? id : ""),
    exportPort: Number(row.integer("nvme-tcp-server-port", 0n)),
    ...hosts.length === 0 ? {} : { allowedHosts: hosts },
    ...uses.length === 0 ? {} : { routerUses: uses },
    comment: row.text("comment", ""),
  };
}

/**
 * A mounted disk as a pool. One that says nothing about its mount point or space (a network mount, say) is none: a
 * volume on it would be refused, and no other volume suffers for it.
 */
function poolOf(row: Row, router: RouterWords): Pool | undefined {
  if (!row.flag("mounted", false) || !row.has("size") || !row.has("free")) return undefined;
  const mountPoint = row.text("mount-point", "").replace(/^\/+|\/+$/g, "");
  if (mountPoint === "") return undefined;
  const filesystem = row.text("fs", "");
  const label = row.text("fs-label", "");
  const hasSubvolumes = router.supportsSubvolumes && filesystem === "btrfs" && label !== "" &&
    isSendable(label);
  return {
    mountPoint,
    filesystem,
    sizeBytes: row.integer("size"),
    freeBytes: row.integer("free"),
    state: row.text("state", ""),
    subvolumeLabel: hasSubvolumes ? label : undefined,
  };
}

/** A label that two file systems have names neither: what is to go into one could land in the other. */
function withOwnLabels(pools: readonly Pool[]): Pool[] {
  const isShared = ({ subvolumeLabel, mountPoint }: Pool) =>
    pools.some((other) => other.subvolumeLabel === subvolumeLabel && other.mountPoint !== mountPoint);
  return pools.map((pool) => isShared(pool) ? { ...pool, subvolumeLabel: undefined } : pool);
}

/** What `/file` calls a folder: `disk` is where a pool is mounted. */
const folderTypes: readonly string[] = ["directory", "disk"];

/**
 * Reads a frame of files, and keeps those whose path is wanted: the router's `where` has only narrowed them down.
 *
 * @throws {VolumeError} unavailable when a file cannot be read
 */
export function parseFiles(frame: string, isWanted: (path: string) => boolean): StoredFile[] {
  const files: StoredFile[] = [];
  for (const row of parseRows(frame, "list of files")) {
    const path = imagePathOf(row.text("name"));
    if (!isWanted(path)) continue;
    const directory = folderTypes.includes(row.text("type"));
    files.push({ path, directory, sizeBytes: directory ? 0n : row.integer("size") });
  }
  return files;
}

/**
 * Reads a frame of subvolumes; undefined when the one asked about is not among them. One that is being removed is as
 * gone.
 *
 * @throws {VolumeError} unavailable when it cannot be read, or is there twice
 */
export function parseSubvolume(frame: string, { label, path }: SubvolumeRef): StoredSubvolume | undefined {
  const what = "list of subvolumes";
  const found = parseRows(frame, what).filter((row) =>
    row.text("fs") === label && row.text("fullname") === path && !row.flag("dead", false)
  );
  const row = found[0];
  if (row === undefined) return undefined;
  if (found.length > 1) throw unreadable(what, `it has two of one name: fs=${label} fullname=${path}`);
  return { readOnly: row.flag("read-only", false), parentName: lastSegment(row.text("parent", "")) };
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
