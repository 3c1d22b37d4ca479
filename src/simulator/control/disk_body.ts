import { type Disk, plainDisk } from "../model/disk.ts";
import { normalisePath } from "../model/paths.ts";
import { Refusal } from "../refusal.ts";
import type { Value } from "../value.ts";
import { BadRequest, type JsonObject } from "./request.ts";

/** A disk whose id is not chosen yet. */
type Draft = Omit<Disk, "id">;
type Reader = (value: unknown, name: string) => Partial<Draft>;

/** Properties that the model knows, by the names that the router gives them. */
const readers: Readonly<Record<string, Reader>> = {
  slot: (value, name) => ({ slot: text(value, name) }),
  type: (value, name) => ({ type: text(value, name) }),
  comment: (value, name) => ({ comment: text(value, name) }),
  model: (value, name) => ({ model: text(value, name) }),
  serial: (value, name) => ({ serial: text(value, name) }),
  interface: (value, name) => ({ interface: text(value, name) }),
  "raid-master": (value, name) => ({ raidMaster: text(value, name) }),
  disabled: (value, name) => ({ disabled: yesNo(value, name) }),
  size: (value, name) => ({ sizeBytes: bytes(value, name) }),
  "attached-size": (value, name) => ({ attachedBytes: bytes(value, name) }),
  "file-path": (value, name) => ({ filePath: filePath(text(value, name)) }),
  "file-size": (value, name) => ({ fileSizeBytes: bytes(value, name) }),
  "mount-filesystem": (value, name) => ({ mountFilesystem: yesNo(value, name) }),
  "nvme-tcp-export": (value, name) => ({ exported: yesNo(value, name) }),
  "nvme-tcp-server-port": (value, name) => ({ port: Number(bytes(value, name)) }),
  "nvme-tcp-server-nqn": (value, name) => ({ nqn: text(value, name) }),
  "nvme-tcp-server-allow-host-name": (value, name) => ({ allowHostName: text(value, name) }),
};

/** Properties of a pool, read on top of the pool that the disk is. */
const poolProperties = ["mounted", "mount-point", "fs-label", "pool-fs", "state", "vanish"];
/** Told by the simulator, not to be set. */
const readOnly = [".id", "block-device", "served", "fs", "free", "use", "sector-size", "file-offset"];

/**
 * Reads a new disk. Sizes that are not given follow from those that are; any property that the model does not know is
 * kept and shown as it is.
 *
 * @throws {BadRequest} when a property has the wrong type, or the slot is missing.
 */
export function readNewDisk(body: JsonObject): Draft {
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
 * Reads changes of a disk; `null` takes an unknown property away.
 *
 * @throws {BadRequest} when a property has the wrong type.
 */
export function readDiskChanges(body: JsonObject, disk: Disk): Disk {
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
  if (!poolProperties.some((name) => body[name] !== undefined)) return disk;
  const before = disk.pool ??
    {
      mountPoint: disk.slot,
      label: `${disk.slot}-fs`,
      filesystem: undefined,
      mounted: true,
      disksVanish: false,
      state: "clean",
      otherBytes: 0n,
    };
  return {
    ...disk,
    pool: {
      ...before,
      mounted: yesNo(body["mounted"] ?? before.mounted, "mounted"),
      mountPoint: text(body["mount-point"] ?? before.mountPoint, "mount-point"),
      filesystem: filesystem(body["pool-fs"], before.filesystem),
      disksVanish: yesNo(body["vanish"] ?? before.disksVanish, "vanish"),
      label: text(body["fs-label"] ?? before.label, "fs-label"),
      state: text(body["state"] ?? before.state, "state"),
    },
  };
}

/** An export without port or NQN is none; the router would fill them in. */
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

function text(value: unknown, name: string): string {
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
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  throw new BadRequest(`${name} must be a text, a whole number, true or false.`);
}
