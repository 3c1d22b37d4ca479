import { clipBytes } from "../bytes.ts";
import { Refusal } from "../refusal.ts";
import { type Disk, type DiskSettings, plainDisk, servedNqn } from "./disk.ts";
import { normalisePath, parentOf } from "./paths.ts";
import type { Router } from "./router.ts";

const defaultPort = 4420;
const defaultNqnPrefix = "nqn.2000-02.com.mikrotik:";

/**
 * `/disk add`: makes the disk and its backing file, or uses an existing file.
 *
 * @throws {Refusal} when it cannot; then nothing has changed.
 */
export function addDisk(router: Router, settings: DiskSettings): Disk {
  const type = settings.type;
  if (type === undefined) throw Refusal.missingValue("type");
  if (type === "raid") return addRaid(router, chooseSlot(router, settings.slot), settings);
  if (type !== "file") throw Refusal.noMatch("type");
  if (settings.filePath === undefined) throw Refusal.missingValue("file-path");
  const slot = chooseSlot(router, settings.slot);
  const path = normalisePath(settings.filePath);
  const draft = exportDefaults({
    ...plainDisk,
    ...clip(router, settings),
    id: 0,
    type,
    slot,
    model: `/${path}`,
    filePath: `/${path}`,
  });
  assertNqnFree(router, draft, undefined);
  const sizeBytes = provideFile(router, path, settings.fileSizeBytes);
  return router.disks.add({ ...draft, sizeBytes, attachedBytes: sizeBytes, fileSizeBytes: sizeBytes });
}

/**
 * `/disk set`: changes the given settings.
 *
 * @throws {Refusal} when it cannot; then nothing has changed.
 */
export function changeDisk(router: Router, disk: Disk, settings: DiskSettings): void {
  if (settings.type !== undefined && settings.type !== disk.type) throw Refusal.noMatch("type");
  if (settings.filePath !== undefined && `/${normalisePath(settings.filePath)}` !== disk.filePath) {
    throw Refusal.badPath(settings.filePath);
  }
  if (settings.raidMaster !== undefined) return joinRaid(router, disk, settings.raidMaster);
  if (settings.slot !== undefined && settings.slot !== disk.slot) assertSlot(router, settings.slot);
  const { filePath: _path, fileSizeBytes, ...rest } = clip(router, settings);
  const changed = exportDefaults(mounted(router, { ...disk, ...rest }, settings));
  assertNqnFree(router, changed, disk);
  const resized = fileSizeBytes === undefined ? changed : resize(router, changed, fileSizeBytes);
  router.disks.replace(attach(router, disk, resized));
}

/** A router mounts a file system as soon as it is allowed to, also each drive of a Btrfs, and lets go of one that is not used. */
function mounted(router: Router, disk: Disk, { mountFilesystem }: DiskSettings): Disk {
  const { pool } = disk;
  if (pool === undefined || mountFilesystem === undefined || disk.disabled) return disk;
  if (!mountFilesystem && pool.mounted) assertUnused(router, pool.mountPoint);
  return { ...disk, pool: { ...pool, mounted: mountFilesystem } };
}

function assertUnused(router: Router, mountPoint: string): void {
  const prefix = `/${mountPoint}/`;
  const isBusy = router.disks.list().some((disk) => disk.filePath.startsWith(prefix));
  if (isBusy) throw Refusal.couldNotUnmount();
}

/**
 * `/disk remove`: the file stays.
 *
 * @throws {Refusal} for hardware, and for a pool with disks on it.
 */
export function removeDisk(router: Router, disk: Disk): void {
  if (disk.type === "hardware") throw Refusal.notRemovable(disk.slot);
  if (disk.pool !== undefined) assertUnused(router, disk.pool.mountPoint);
  router.disks.remove(disk.id);
}

/** Makes the backing file or uses an existing one, and returns its size. */
function provideFile(router: Router, path: string, sizeBytes: bigint | undefined): bigint {
  const existing = router.files.find(path);
  router.assertWritable(path);
  if (existing !== undefined) {
    if (existing.kind !== "file" || router.behaviours.adopt === "refused") throw Refusal.fileExists(path);
    if (sizeBytes === undefined || sizeBytes === existing.sizeBytes) return existing.sizeBytes;
    if (router.behaviours.otherSize === "refused") throw Refusal.fileHasOtherSize(path);
    if (router.behaviours.otherSize === "kept") return existing.sizeBytes;
    router.files.resize(path, sizeBytes);
    return sizeBytes;
  }
  if (sizeBytes === undefined) throw Refusal.missingValue("file-size");
  const parent = parentOf(path);
  const missing = parent !== "" && !router.files.isDirectory(parent);
  const pool = router.poolOf(path);
  if (pool === undefined || missing) throw Refusal.noSuchDirectory(parent);
  router.assertSpace(path, router.allocationOf(pool) === "full" ? sizeBytes : 0n);
  router.files.create(path, sizeBytes);
  return sizeBytes;
}

/**
 * Gives the disk its new size. With `grow=never` the router accepts it without effect. With `after-toggle` connected
 * hosts, and the real file, get it only after the export was off and on again.
 */
function resize(router: Router, disk: Disk, fileSizeBytes: bigint): Disk {
  if (disk.filePath === "") throw Refusal.noMatch("file-size");
  if (router.ignoresResize) return disk;
  if (fileSizeBytes < disk.fileSizeBytes) throw Refusal.cannotShrink();
  // Its pool is not mounted, or the file was removed.
  const path = disk.filePath.slice(1);
  const file = router.files.find(path);
  if (file === undefined) throw Refusal.noSuchItem();
  router.assertWritable(path);
  const pool = router.poolOf(disk.filePath);
  if (pool !== undefined && router.allocationOf(pool) === "full") {
    router.assertSpace(disk.filePath, fileSizeBytes - disk.fileSizeBytes);
  }
  if (router.behaviours.grow === "never") return { ...disk, fileSizeBytes };
  // Of a file that has grown without its disk, the rest goes.
  if (file.sizeBytes > fileSizeBytes) router.files.resize(path, fileSizeBytes);
  return { ...disk, fileSizeBytes, sizeBytes: fileSizeBytes };
}

/** Updates the attached size if that is allowed. */
function attach(router: Router, before: Disk, after: Disk): Disk {
  const wasServed = servedNqn(before) !== undefined;
  const staysServed = wasServed && servedNqn(after) === servedNqn(before);
  if (after.sizeBytes === after.attachedBytes) return after;
  if (router.behaviours.grow === "after-toggle" && staysServed) return after;
  const path = after.filePath.slice(1);
  const file = router.files.find(path);
  if (file !== undefined && file.sizeBytes < after.sizeBytes) router.files.resize(path, after.sizeBytes);
  return { ...after, attachedBytes: after.sizeBytes };
}

/** An exported disk has a port and an NQN, given or not. */
function exportDefaults(disk: Disk): Disk {
  if (!disk.exported) return disk;
  return { ...disk, port: disk.port ?? defaultPort, nqn: disk.nqn ?? `${defaultNqnPrefix}${disk.slot}` };
}

/** Cuts off the ends of texts that are too long, silently. */
function clip(router: Router, settings: DiskSettings): DiskSettings {
  const { maxComment, maxNqn } = router.behaviours;
  const { comment, nqn } = settings;
  return {
    ...settings,
    ...(comment === undefined ? {} : { comment: clipBytes(comment, maxComment) }),
    ...(nqn === undefined ? {} : { nqn: clipBytes(nqn, maxNqn) }),
  };
}

function chooseSlot(router: Router, wanted: string | undefined): string {
  if (wanted === undefined) return freeSlot(router, "file");
  const renames = router.behaviours.duplicateSlot === "renamed" && router.disks.isTaken(wanted);
  const slot = renames ? freeSlot(router, `${wanted}-`) : wanted;
  assertSlot(router, slot);
  return slot;
}

function assertSlot(router: Router, slot: string): void {
  if (slot.length > router.behaviours.maxSlot) throw Refusal.slotTooLong(router.behaviours.maxSlot);
  if (slot === "") throw Refusal.missingValue("slot");
  if (router.disks.isTaken(slot)) throw Refusal.alreadyHave("slot");
}

function assertNqnFree(router: Router, disk: Disk, self: Disk | undefined): void {
  const nqn = servedNqn(disk);
  if (nqn === undefined || nqn === servedNqn(self)) return;
  const taken = router.disks.findServed(nqn).some((other) => other.id !== self?.id);
  if (taken) throw Refusal.alreadyHave("nvme-tcp-server-nqn");
}

function freeSlot(router: Router, start: string): string {
  for (let number = 1;; number++) {
    if (!router.disks.isTaken(`${start}${number}`)) return `${start}${number}`;
  }
}

/** @throws {Refusal} for anything but a mirror: other kinds of RAID are not simulated. */
export function readRaidType(text: string): "1" {
  if (text === "1") return text;
  throw Refusal.noMatch("raid-type");
}

/** @throws {Refusal} for an invalid number of drives. */
export function readDeviceCount(text: string): number {
  if (!/^[0-9]{1,3}$/.test(text)) throw Refusal.noMatch("raid-device-count");
  if (Number(text) < 2) throw Refusal.outOfRange("raid-device-count", "2..");
  return Number(text);
}

/**
 * `/disk add type=raid`: makes a mirror without a size, until it has its drives.
 *
 * @param slot a free one
 */
function addRaid(router: Router, slot: string, { raidType, raidDevices }: DiskSettings): Disk {
  if (raidType === undefined) throw Refusal.missingValue("raid-type");
  if (raidDevices === undefined) throw Refusal.missingValue("raid-device-count");
  return router.disks.add({ ...plainDisk, type: "raid", slot, model: "RAID1", raidDevices });
}

/**
 * Makes a drive a member of a RAID; with its last drive the RAID gets its size.
 *
 * @throws {Refusal} when the drive has a file system, or the RAID has all its drives.
 */
function joinRaid(router: Router, drive: Disk, master: string): void {
  if (drive.raidMaster === master) return;
  const raid = router.disks.findBySlot(master);
  if (drive.type !== "hardware" || raid?.raidDevices === undefined) throw Refusal.noMatch("raid-master");
  if (drive.pool !== undefined || drive.raidMaster !== "none") throw Refusal.inUse();
  const members = router.disks.list().filter(({ raidMaster }) => raidMaster === master);
  if (members.length >= raid.raidDevices) throw Refusal.inUse();
  router.disks.replace({ ...drive, raidMaster: master });
  if (members.length + 1 < raid.raidDevices) return;
  const smallest = members.reduce(
    (least, { sizeBytes }) => sizeBytes < least ? sizeBytes : least,
    drive.sizeBytes,
  );
  router.disks.replace({ ...raid, sizeBytes: smallest });
}

/**
 * `/disk format`: makes a file system and mounts it under the name of the slot.
 *
 * @throws {Refusal} for a disk that belongs to a RAID, is incomplete, or has something on it.
 */
export function formatDisk(router: Router, disk: Disk, filesystem: string | undefined, label = ""): void {
  if (filesystem === undefined) throw Refusal.missingValue("file-system");
  if (filesystem !== "btrfs" && filesystem !== "xfs") throw Refusal.noMatch("file-system");
  if (disk.filePath !== "" || disk.raidMaster !== "none" || disk.sizeBytes === 0n) throw Refusal.inUse();
  const mountPoint = disk.pool?.mountPoint ?? disk.slot;
  if (router.files.list().some(({ path }) => path.startsWith(`${mountPoint}/`))) {
    throw Refusal.couldNotUnmount();
  }
  router.files.ensureDisk(mountPoint);
  router.disks.replace({
    ...disk,
    pool: {
      mountPoint,
      label,
      filesystem,
      mounted: true,
      disksVanish: false,
      state: "clean",
      otherBytes: 0n,
    },
  });
}
