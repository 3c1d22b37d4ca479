import { Refusal } from "../refusal.ts";
import { type Disk, type DiskSettings, plainDisk, type Raid } from "./disk.ts";
import type { Router } from "./router.ts";

/** How many drives a RAID of each kind needs at least, and of how many of them it has the room. */
const kinds: Readonly<Record<Raid["type"], readonly [least: number, room: (drives: number) => number]>> = {
  "0": [2, (drives) => drives],
  "1": [2, () => 1],
  "4": [3, (drives) => drives - 1],
  "5": [3, (drives) => drives - 1],
  "6": [4, (drives) => drives - 2],
  "linear": [1, (drives) => drives],
};

/** @throws {Refusal} for what is no kind of RAID. */
export function readRaidType(text: string): Raid["type"] {
  if (Object.hasOwn(kinds, text)) return text as Raid["type"];
  throw Refusal.noMatch("raid-type");
}

/** @throws {Refusal} for what is no number of drives. */
export function readDeviceCount(text: string): number {
  if (!/^[0-9]{1,3}$/.test(text) || Number(text) < 1) throw Refusal.noMatch("raid-device-count");
  return Number(text);
}

/**
 * `/disk add type=raid`: a device without a size, until it has its drives.
 *
 * @param slot one that is free
 * @throws {Refusal} when the kind needs more drives.
 */
export function addRaid(router: Router, slot: string, { raidType, raidDevices }: DiskSettings): Disk {
  if (raidType === undefined) throw Refusal.missingValue("raid-type");
  if (raidDevices === undefined) throw Refusal.missingValue("raid-device-count");
  if (raidDevices < kinds[raidType][0]) {
    throw Refusal.outOfRange("raid-device-count", `${kinds[raidType][0]}..`);
  }
  return router.disks.add({
    ...plainDisk,
    type: "raid",
    slot,
    model: `RAID${raidType}`,
    raid: { type: raidType, devices: raidDevices },
  });
}

/**
 * Makes a drive the member of a RAID; with its last one the RAID has its size.
 *
 * @throws {Refusal} when the drive has a file system, or the RAID has all its drives.
 */
export function joinRaid(router: Router, drive: Disk, master: string): void {
  if (drive.raidMaster === master) return;
  const raid = router.disks.findBySlot(master);
  if (drive.type !== "hardware" || raid?.raid === undefined) throw Refusal.noMatch("raid-master");
  if (drive.pool !== undefined || drive.raidMaster !== "none") throw Refusal.inUse();
  const { type, devices } = raid.raid;
  const members = router.disks.list().filter(({ raidMaster }) => raidMaster === master);
  if (members.length >= devices) throw Refusal.inUse();
  router.disks.replace({ ...drive, raidMaster: master });
  if (members.length + 1 < devices) return;
  const smallest = [...members, drive].map(({ sizeBytes }) => sizeBytes).toSorted((a, b) =>
    a < b ? -1 : 1
  )[0]!;
  router.disks.replace({ ...raid, sizeBytes: smallest * BigInt(kinds[type][1](devices)) });
}

/**
 * `/disk format`: makes a file system and mounts it under the name of the slot.
 *
 * @throws {Refusal} for what belongs to a RAID, is not whole, or has something on it.
 */
export function formatDisk(router: Router, disk: Disk, filesystem: string | undefined): void {
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
      label: `${disk.slot}-fs`,
      filesystem,
      mounted: true,
      disksVanish: false,
      state: "clean",
      otherBytes: 0n,
    },
  });
}
