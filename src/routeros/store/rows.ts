import type {
  ForeignDisk,
  Pool,
  StoredFile,
  StoredVolume,
  UnreadablePool,
} from "../../volume/model/inventory.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parseArrayState } from "../../volume/rules/array_state.ts";
import { isSendable } from "../console/command.ts";
import { eachRow, type JsonValue, parseRows, type Row, unreadable } from "../console/json.ts";
import { imagePathOf } from "./queries.ts";

/** The disks of a frame, sorted by what they are. */
export interface Disks {
  /** Every file-backed disk, ordered by id. */
  readonly volumes: readonly StoredVolume[];
  /** Every other disk. */
  readonly others: readonly ForeignDisk[];
  readonly pools: readonly Pool[];
  /** See `RouterState.unreadablePools`. */
  readonly unreadablePools?: readonly UnreadablePool[];
  /** The slots of the pools, by mount point. */
  readonly poolSlots: ReadonlyMap<string, string>;
}

/**
 * Reads a frame of disks.
 *
 * @param known volumes of an earlier look, by id: those that are as they were are given again, so that several looks at
 * thousands of volumes take the memory of one
 * One row that cannot be read is no reason to stop the calls of all others: a file-backed disk is in the list all the same, see
 * `StoredVolume.unreadable`, a mounted one among `unreadablePools`. A disk without slot or type, or of no file or comment, is:
 * it could be any volume's.
 *
 * @throws {VolumeError} unavailable when such a disk cannot be read, or two disks sit in one slot
 */
export function parseDisks(
  frame: string,
  known: ReadonlyMap<string, StoredVolume> = new Map(),
): Disks {
  const what = "list of disks";
  const volumes: StoredVolume[] = [];
  const others: ForeignDisk[] = [];
  const pools: { readonly pool: Pool; readonly mount: Mount }[] = [];
  const unreadablePools: UnreadablePool[] = [];
  const mounts: Mount[] = [];
  const poolSlots = new Map<string, string>();
  const seen = new Set<string>();
  const inVolumes = new Map<string, string>();
  const upon = new Map<string, string[]>();
  for (const row of eachRow(frame, what)) {
    const id = row.text("slot");
    const kind = row.text("type");
    if (seen.has(id)) throw unreadable(what, `it has two disks in one slot: slot=${id}`);
    seen.add(id);
    noteLinks(row, id, upon);
    if (kind === "file") {
      const label = row.find("fs-label") ?? "";
      if (label !== "") inVolumes.set(label, id);
      volumes.push(sameOf(known.get(id), volumeOf(row, id)));
    } else others.push({ id, kind });
    const mount = mountOf(row, id);
    if (mount === undefined) continue;
    const pool = poolOf(row, mount);
    mounts.push(mount);
    if ("reason" in pool) {
      unreadablePools.push(pool);
      continue;
    }
    poolSlots.set(pool.mountPoint, id);
    pools.push({ pool, mount });
  }
  return {
    volumes: sorted(upon.size === 0 ? volumes : volumes.map((volume) => withDisksUpon(volume, upon))),
    others,
    pools: pools.map(({ pool, mount }) => withOwnLabel(pool, mount, mounts, inVolumes)),
    ...unreadablePools.length === 0 ? {} : { unreadablePools },
    poolSlots,
  };
}

/** Volumes in the order of their ids' code units: the same on every machine and in every locale. */
export function sorted(volumes: readonly StoredVolume[]): StoredVolume[] {
  return volumes.toSorted((a, b) => a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

function volumeOf(row: Row, id: string): StoredVolume {
  try {
    return wholeVolumeOf(row, id);
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    return unreadableVolumeOf(row, id, error.message);
  }
}

/** What is known of a disk that cannot be read: in doubt it is exported, and as large as it may be. */
function unreadableVolumeOf(row: Row, id: string, reason: string): StoredVolume {
  const sizes = ["size", "file-size"].flatMap((key) => row.maxBytes(key) ?? []);
  const uses = routerUses(row);
  return {
    id,
    imagePath: imagePathOf(row.text("file-path")),
    sizeBytes: sizes[0] ?? 0n,
    exported: mayBeExported(row),
    exportNqn: row.find("nvme-tcp-server-nqn") ?? "",
    exportPort: 0,
    ...uses.length === 0 ? {} : { routerUses: uses },
    comment: row.text("comment", ""),
    unreadable: reason,
    ...sizes.length === 0 ? { sizeUnknown: true } : {},
  };
}

/** Anything but a plain "no" may be a yes. */
function mayBeExported(row: Row): boolean {
  try {
    return row.flag("nvme-tcp-export");
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    return true;
  }
}

function wholeVolumeOf(row: Row, id: string): StoredVolume {
  // Read for their errors only.
  row.flag("mounted", false);
  slotsBelow(row);
  const exported = row.flag("nvme-tcp-export");
  const uses = routerUses(row);
  return {
    id,
    imagePath: imagePathOf(row.text("file-path")),
    // `size` is exact; `file-size` may be rounded (50.0GiB) and is read only where it is a whole number.
    sizeBytes: row.integer(!row.has("size") && row.hasInteger("file-size") ? "file-size" : "size"),
    exported,
    exportNqn: row.text("nvme-tcp-server-nqn", ""),
    exportPort: Number(row.integer("nvme-tcp-server-port", 0n)),
    ...uses.length === 0 ? {} : { routerUses: uses },
    ...row.isSet("mount-filesystem") ? { mayBeMounted: true } : {},
    comment: row.text("comment", ""),
  };
}

/**
 * The pools, with the arrays that they stripe over and that are not sound, of a frame of `uncleanArraysQuery`. An array whose state
 * cannot be read is not sound; one that does not tell what it is a part of is no pool's.
 *
 * @throws {VolumeError} unavailable when it is no list
 */
export function withUnsoundArrays(
  { pools, poolSlots }: Pick<Disks, "pools" | "poolSlots">,
  frame: string,
): readonly Pool[] {
  const below = parseRows(frame, "list of arrays").flatMap((row) => {
    const [slot, master, state] = [row.find("slot") ?? "", row.find("raid-master") ?? "", shownStateOf(row)];
    return master === "" || master === "none" || parseArrayState(state).sound
      ? []
      : [{ slot, master, state }];
  });
  if (below.length === 0) return pools;
  return pools.map((pool) => {
    const own = below.filter(({ master }) => master === poolSlots.get(pool.mountPoint));
    const unsoundArrays = own.map(({ slot, state }) => ({ slot, state }));
    return own.length === 0 ? pool : { ...pool, unsoundArrays };
  });
}

/** The state of an array; a router may give its parts as a list. */
export function stateOf(row: Row): string {
  return row.texts("state").join(", ");
}

/** The same, in words where it cannot be read; such an array is not sound. */
export function shownStateOf(row: Row): string {
  try {
    return stateOf(row);
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    return "of a state that cannot be read";
  }
}

/** Where a disk is mounted, or may be, as far as its row can be read. */
interface Mount {
  /** Its slot. */
  readonly id: string;
  /** "" where it cannot be read. */
  readonly mountPoint: string;
  /** Of a Btrfs; "" for none. One that is no text is no other's either: the router prints one label in one way. */
  readonly label: string;
  /** "" where it was not read. */
  readonly filesystemUuid: string;
}

/**
 * The mount of a disk that can hold a pool. One that says nothing about its mount point or space (a network mount, say) cannot: a
 * volume on it would be refused, and no other volume suffers for it.
 */
function mountOf(row: Row, id: string): Mount | undefined {
  if (!mayBeMounted(row) || !row.has("size") || !row.has("free")) return undefined;
  const printed = row.has("mount-point") ? row.find("mount-point") : "";
  const mountPoint = printed?.replace(/^\/+|\/+$/g, "") ?? "";
  if (printed !== undefined && mountPoint === "") return undefined;
  const isBtrfs = row.has("fs") && ["btrfs", undefined].includes(row.find("fs"));
  const label = isBtrfs ? row.find("fs-label") ?? "" : "";
  return { id, mountPoint, label, filesystemUuid: row.find("fs-uuid") ?? "" };
}

/** Whether the row does not deny that the disk is mounted. */
export function mayBeMounted(row: Row): boolean {
  return row.findFlag("mounted") ?? row.isSet("mounted");
}

function poolOf(row: Row, mount: Mount): Pool | UnreadablePool {
  try {
    row.flag("mounted");
    row.text("mount-point");
    return wholePoolOf(row, mount);
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    return { mountPoint: mount.mountPoint, reason: error.message };
  }
}

function wholePoolOf(row: Row, { mountPoint }: Mount): Pool {
  const filesystem = row.text("fs", "");
  const label = row.text("fs-label", "");
  const hasSubvolumes = filesystem === "btrfs" && label !== "" && isSendable(label);
  return {
    mountPoint,
    filesystem,
    sizeBytes: row.integer("size"),
    freeBytes: row.integer("free"),
    state: stateOf(row),
    subvolumeLabel: hasSubvolumes ? label : undefined,
  };
}

/**
 * A label that two mounts have names neither: what is to go into one could land in the other. The router mounts each
 * drive of a Btrfs that is not told otherwise, so two mounts may be one file system, which its UUID shows.
 *
 * @param mounts all of them, also those of which no pool could be read
 * @param inVolumes the labels that the router reads in file-backed disks: whoever writes to a volume writes its label
 */
function withOwnLabel(
  pool: Pool,
  { filesystemUuid }: Mount,
  mounts: readonly Mount[],
  inVolumes: ReadonlyMap<string, string>,
): Pool {
  const { subvolumeLabel: label, mountPoint } = pool;
  if (label === undefined) return pool;
  const twin = mounts.find((other) => other.label === label && other.mountPoint !== mountPoint);
  if (twin !== undefined) {
    const sameFilesystem = filesystemUuid !== "" && filesystemUuid === twin.filesystemUuid;
    return { ...pool, subvolumeLabel: undefined, labelSharedWith: { id: twin.id, sameFilesystem } };
  }
  const labelTakenBy = inVolumes.get(label);
  return labelTakenBy === undefined ? pool : { ...pool, labelTakenBy };
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
  for (const row of eachRow(frame, "list of files")) {
    const path = imagePathOf(row.text("name"));
    if (!isWanted(path)) continue;
    const directory = folderTypes.includes(row.text("type"));
    files.push({ path, directory, sizeBytes: directory ? 0n : row.integer("size") });
  }
  return files;
}

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
  "smb-export": "it is exported over SMB",
  "media-sharing": "its media are shared",
  "file-offset": "it begins within its file",
};

/** Set by the router itself where `/disk/settings` says so; it shares nothing of a disk that is not mounted. */
const setByRouter: readonly string[] = ["smb-sharing", "media-sharing"];

/** Properties that name the disk that one lies on: as a partition, or as what is encrypted there. */
const links: readonly string[] = ["parent", "crypted-backend"];

/**
 * Slots of the disks that one lies on.
 *
 * @throws {VolumeError} unavailable when they cannot be read
 */
export function slotsBelow(row: Row): readonly string[] {
  return links.filter((link) => row.isSet(link)).map((link) => row.text(link));
}

/**
 * Notes under the slot of another disk that this one lies on it: a partition of it, or what is encrypted on it. Of a look
 * at few those that are mounted.
 */
function noteLinks(row: Row, id: string, upon: Map<string, string[]>): void {
  for (const below of findSlotsBelow(row)) upon.set(below, [...upon.get(below) ?? [], id]);
}

/** What may be the slots of the disks that one lies on, of a row that need not be readable. */
export function findSlotsBelow(row: Row): readonly string[] {
  return links.flatMap((link) => row.isSet(link) ? row.findAny(link, textsIn) ?? [] : []);
}

/** What of a value may be a volume's slot. */
function textsIn(value: JsonValue): readonly string[] {
  return [value].flat().filter((part) => typeof part === "string");
}

function withDisksUpon(volume: StoredVolume, upon: ReadonlyMap<string, readonly string[]>): StoredVolume {
  const slots = upon.get(volume.id);
  if (slots === undefined) return volume;
  const uses = slots.map((slot) => `a disk is on it: disk=${slot}`);
  return { ...volume, routerUses: [...new Set([...volume.routerUses ?? [], ...uses])] };
}

/** What the router does with a disk itself beside exporting it over NVMe/TCP. */
function routerUses(row: Row): string[] {
  const isMounted = mayBeMounted(row);
  const counts = (key: string) => row.isSet(key) && (isMounted || !setByRouter.includes(key));
  const own = Object.keys(signs).filter(counts).map((key) => signs[key]!);
  return [...new Set(own)];
}

/** The earlier volume where the later one is the same in everything; a list in it makes it another one. */
function sameOf(before: StoredVolume | undefined, volume: StoredVolume): StoredVolume {
  if (before === undefined) return volume;
  const keys = Object.keys(volume) as (keyof StoredVolume)[];
  const isSame = keys.length === Object.keys(before).length &&
    keys.every((key) => before[key] === volume[key]);
  return isSame ? before : volume;
}
