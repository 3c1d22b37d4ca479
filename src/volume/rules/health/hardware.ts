import {
  type BtrfsDevice,
  btrfsErrorKinds,
  type BtrfsFilesystem,
  type HardwareDisk,
  type HardwareFinding,
  type HardwareReading,
} from "../../model/health/hardware.ts";
import { parseArrayState } from "../array_state.ts";

/** A finding before the disk is added that it is about. */
type Fault = Pick<HardwareFinding, "reason" | "severity" | "message">;

/**
 * The faults of arrays, drives and Btrfs file systems in a reading. An unknown value is never one: the fewer values there
 * are, the fewer faults. Only a drive's own limits count.
 *
 * @param before the reading before this one: by it an error counter has risen, and a drive stays hot
 */
export function judgeHardware(
  before: HardwareReading | undefined,
  now: HardwareReading,
): readonly HardwareFinding[] {
  const disks = now.disks ?? [];
  return [
    ...disks.flatMap((disk) => about(now, disk, diskFaults(disk, sameDrive(before, disk)))),
    ...(now.filesystems ?? []).flatMap((filesystem) => filesystemFindings(before, now, filesystem)),
  ];
}

/** Where a volume has a file system of that label, its user may have written it: only one with a known disk counts. */
function filesystemFindings(
  before: HardwareReading | undefined,
  now: HardwareReading,
  filesystem: BtrfsFilesystem,
): HardwareFinding[] {
  const { devices = [], label } = filesystem;
  const named = disksOf(now, filesystem);
  const first = named.find(({ mountPoint }) => mountPoint !== undefined) ?? named[0];
  if (first === undefined) return [];
  const name = label === undefined ? "" : ` with the label ${label}`;
  const message = `a device of the Btrfs file system${name} on ${described(first)} is missing`;
  const lost: Fault = { reason: "BtrfsDeviceMissing", severity: "critical", message };
  return [
    ...filesystem.missing === true ? about(now, first, [lost]) : [],
    ...named.flatMap((disk) => {
      const device = devices.find(({ slot }) => slot === disk.slot)!;
      return about(now, disk, btrfsErrorFaults(disk, sameDevice(before, filesystem, disk), device));
    }),
  ];
}

function diskFaults(disk: HardwareDisk, before: HardwareDisk | undefined): Fault[] {
  return [...arrayFaults(disk), ...warningFaults(disk), ...wearFaults(disk), ...changeFaults(before, disk)];
}

function arrayFaults(disk: HardwareDisk): Fault[] {
  const { kind, state, memberFailed, memberState, master } = disk;
  const isUnsound = kind === "raid" && state !== undefined && !parseArrayState(state).sound;
  const isFailed = memberFailed === true || /\bfaulty\b/.test(memberState ?? "");
  const of = master === undefined ? "its array" : `the array ${master}`;
  return [
    ...fault(isUnsound, "ArrayUnsound", "critical", `the array ${described(disk)} is ${state}`),
    ...fault(isFailed, "MemberFailed", "critical", `${described(disk)} has failed as a member of ${of}`),
  ];
}

function warningFaults(disk: HardwareDisk): Fault[] {
  const { warnings = [] } = disk;
  const name = described(disk);
  const unreliable = warnings.includes("reliability-degraded");
  const readOnly = warnings.includes("read-only");
  // Those of spare blocks and temperature have a reason of their own.
  const others = warnings.filter((one) => one === "volatile-backup-failed");
  return [
    ...fault(unreliable, "DriveUnreliable", "critical", `${name} says that it is not reliable any more`),
    ...fault(readOnly, "DriveReadOnly", "critical", `${name} takes no writes any more`),
    ...fault(others.length > 0, "DriveWarning", "warning", `${name} warns of ${others.join(", ")}`),
  ];
}

function wearFaults(disk: HardwareDisk): Fault[] {
  const { sparePercent, spareLimitPercent, usedPercent, warnings = [] } = disk;
  const name = described(disk);
  const isKnown = sparePercent !== undefined && spareLimitPercent !== undefined;
  const isSpareLow = isKnown && sparePercent <= spareLimitPercent || warnings.includes("spare-space");
  const left = isKnown ? `: ${sparePercent} % are left, its limit is ${spareLimitPercent} %` : "";
  const isWorn = usedPercent !== undefined && usedPercent >= 100;
  return [
    ...fault(isSpareLow, "DriveSpareLow", "warning", `${name} runs out of spare blocks${left}`),
    ...fault(isWorn, "DriveWorn", "warning", `${name} has used ${usedPercent} % of its expected life`),
  ];
}

/** A single hot reading may be a burst of writes. */
function changeFaults(before: HardwareDisk | undefined, disk: HardwareDisk): Fault[] {
  if (before === undefined) return [];
  const { celsius, limitCelsius } = disk;
  const name = described(disk);
  const limit = limitCelsius === undefined ? "" : `, its own limit is ${limitCelsius} °C`;
  const at = celsius === undefined ? "" : `: ${celsius} °C${limit}`;
  const isHotter = isHot(before) && isHot(disk);
  const rise = riseOf(before.ioErrors, disk.ioErrors);
  return [
    ...fault(isHotter, "DriveHot", "warning", `${name} is too hot${at}`),
    ...fault(rise > 0, "ErrorsRose", "warning", `${name} had ${rise} more errors of reads and writes`),
  ];
}

function isHot({ celsius, limitCelsius, warnings = [] }: HardwareDisk): boolean {
  const isAbove = celsius !== undefined && limitCelsius !== undefined && celsius > limitCelsius;
  return isAbove || warnings.includes("temperature");
}

function btrfsErrorFaults(disk: HardwareDisk, before: BtrfsDevice | undefined, now: BtrfsDevice): Fault[] {
  const rises = btrfsErrorKinds.flatMap((kind) => {
    const rise = riseOf(before?.errors[kind], now.errors[kind]);
    return rise > 0 ? [`${rise} ${kind}`] : [];
  });
  const message = `${described(disk)} had more errors, which Btrfs counts: ${rises.join(", ")}`;
  return fault(rises.length > 0, "ErrorsRose", "warning", message);
}

/** Counters begin anew after a boot, and a person may reset them. */
function riseOf(before: number | undefined, now: number | undefined): number {
  return before === undefined || now === undefined ? 0 : Math.max(0, now - before);
}

function fault(
  is: boolean,
  reason: Fault["reason"],
  severity: Fault["severity"],
  message: string,
): Fault[] {
  return is ? [{ reason, severity, message }] : [];
}

function about(reading: HardwareReading, disk: HardwareDisk, faults: readonly Fault[]): HardwareFinding[] {
  if (faults.length === 0) return [];
  const { slot, model, serial } = disk;
  const pools = poolsOn(reading, slot);
  return faults.map((one) => ({ ...one, slot, model, serial, pools }));
}

/** Slot, model and serial number, as far as they are known. */
export function described({ slot, model, serial }: HardwareDisk): string {
  const parts = [
    ...model === undefined ? [] : [model],
    ...serial === undefined ? [] : [`serial ${serial}`],
  ];
  return parts.length === 0 ? slot : `${slot} (${parts.join(", ")})`;
}

/** The same drive in the reading before: one without a serial number could be another one in its slot. */
function sameDrive(
  before: HardwareReading | undefined,
  { slot, serial }: HardwareDisk,
): HardwareDisk | undefined {
  if (serial === undefined) return undefined;
  return before?.disks?.find((disk) => disk.slot === slot && disk.serial === serial);
}

/** The same device of the same file system in the reading before. */
function sameDevice(
  before: HardwareReading | undefined,
  { uuid }: BtrfsFilesystem,
  disk: HardwareDisk,
): BtrfsDevice | undefined {
  if (uuid === undefined) return undefined;
  const filesystem = before?.filesystems?.find((one) => one.uuid === uuid);
  return filesystem?.devices?.find(({ slot }) => slot === disk.slot);
}

/** The disks of a file system that are not backed by a file. */
function disksOf({ disks = [] }: HardwareReading, { devices = [] }: BtrfsFilesystem): HardwareDisk[] {
  return devices.flatMap((device) => disks.find(({ slot }) => slot === device.slot) ?? []);
}

/** Mount points of the pools on a disk: through its arrays, its partitions, and the file systems that it is a device of. */
export function poolsOn(reading: HardwareReading, from: string): readonly string[] {
  const { disks = [], filesystems = [] } = reading;
  const seen = new Set<string>();
  const rest = [from];
  for (let slot = rest.pop(); slot !== undefined; slot = rest.pop()) {
    if (seen.has(slot)) continue;
    seen.add(slot);
    const beside = filesystems.map((one) => disksOf(reading, one).map((disk) => disk.slot))
      .filter((slots) => slots.includes(slot));
    rest.push(
      ...disks.filter((disk) => disk.slot === slot).flatMap(({ master }) => master ?? []),
      ...disks.filter(({ parent }) => parent === slot).map((disk) => disk.slot),
      ...beside.flat(),
    );
  }
  return disks.flatMap(({ slot, mountPoint }) => seen.has(slot) ? mountPoint ?? [] : []);
}
