import {
  btrfsErrorKinds,
  type BtrfsFilesystem,
  type HardwareDisk,
  type HardwareFinding,
  type HardwareReading,
} from "../../model/health/hardware.ts";
import { type CounterKind, countOf, type Sign, signs, type Subject } from "./hardware_signs.ts";

/** What the readings so far leave to the next: its unknown values neither begin nor end a fault. */
export interface HardwareHistory {
  readonly seen: readonly SeenSign[];
  /** The last reading, with the place and the names of each disk as they were known last. */
  readonly placed: HardwareReading;
  /** Counters as they were known last, by whose they are. */
  readonly counters: ReadonlyMap<string, ReadonlyMap<CounterKind, number>>;
}

/** A sign that was there when the values that tell were known last. */
interface SeenSign {
  readonly sign: Sign;
  /** The file system that it is of, or that its disk is a device of. */
  readonly uuid: string | undefined;
  /** The serial number of its disk in that reading. */
  readonly serial: string | undefined;
  /** Since when every reading has shown it, in monotonic milliseconds. */
  readonly sinceMs: number;
  /** Whether that was long enough. */
  readonly isFault: boolean;
  readonly finding: HardwareFinding;
}

const nothingSeen: HardwareHistory = { seen: [], placed: {}, counters: new Map() };

/**
 * The faults of arrays, drives and Btrfs file systems by a reading. An unknown value begins none: the fewer values there are,
 * the fewer faults begin. Nor does it end one, which lasts until the router reports that it is over, or that the disk is
 * gone or another one.
 *
 * @param history what the reading before has left @default {none}
 * @param atMs when the reading was made, in monotonic milliseconds
 */
export function judgeHardware(
  reading: HardwareReading,
  history: HardwareHistory = nothingSeen,
  atMs = 0,
): { readonly findings: readonly HardwareFinding[]; readonly history: HardwareHistory } {
  const placed = withKnownPlaces(reading, history.placed);
  const subjects = subjectsOf(reading, history);
  const fresh = subjects.flatMap((subject) =>
    signs.filter((sign) => isOf(sign, subject) && sign.is(subject) === true)
      .map((sign) => seenNow(sign, subject, placed, history, atMs))
  );
  const kept = history.seen.filter((old) =>
    old.isFault && !fresh.some((one) => one.sign === old.sign && mayContinue(one, old)) &&
    !isOver(old, reading, subjects)
  );
  const seen = [...fresh, ...kept];
  return {
    findings: together(seen.filter(({ isFault }) => isFault).map(({ finding }) => finding)),
    history: { seen, placed, counters: countersOf(subjects, history) },
  };
}

/** What has signs: each disk, each file system at one of its disks, and each of its disks as a device. */
function subjectsOf(reading: HardwareReading, { counters }: HardwareHistory): Subject[] {
  const { disks = [], filesystems = [] } = reading;
  const before = (key: string | undefined) => key === undefined ? undefined : counters.get(key) ?? new Map();
  return [
    ...disks.map((disk) => ({ disk, before: before(ownerOf({ disk })) })),
    ...filesystems.flatMap((filesystem) => {
      // Where a volume has a file system, its user may have written it: only one with a known disk counts.
      const named = disksOf(reading, filesystem);
      const [first] = named;
      return [
        ...first === undefined ? [] : [{ disk: first, filesystem, before: undefined }],
        ...named.map((disk) => {
          const device = filesystem.devices!.find(({ slot }) => slot === disk.slot)!;
          return { disk, filesystem, device, before: before(ownerOf({ disk, filesystem })) };
        }),
      ];
    }),
  ];
}

function isOf({ of }: Sign, { filesystem, device }: Subject): boolean {
  return of === (device !== undefined ? "device" : filesystem !== undefined ? "filesystem" : "disk");
}

/** Whose counters they are: without a serial number the drive in a slot may be another one. */
function ownerOf({ disk: { slot, serial }, filesystem }: Pick<Subject, "disk" | "filesystem">) {
  const id = filesystem === undefined ? serial : filesystem.uuid;
  return id === undefined ? undefined : JSON.stringify([filesystem === undefined, slot, id]);
}

function countersOf(subjects: readonly Subject[], { counters }: HardwareHistory) {
  const known = new Map(counters);
  for (const subject of subjects) {
    const key = ownerOf(subject);
    if (key === undefined || subject.before === undefined) continue;
    const counts = new Map(subject.before);
    for (const kind of ["io", ...btrfsErrorKinds] as const) {
      const count = countOf(subject, kind);
      if (count !== undefined) counts.set(kind, count);
    }
    known.set(key, counts);
  }
  return known;
}

/** A sign that the reading shows, which may be one that was there before. */
function seenNow(
  sign: Sign,
  subject: Subject,
  placed: HardwareReading,
  { seen }: HardwareHistory,
  atMs: number,
): SeenSign {
  const uuid = subject.filesystem?.uuid;
  const { disk: { slot, serial } } = subject;
  const { model, serial: known } = placed.disks!.find((disk) => disk.slot === slot)!;
  const message = sign.says(subject, described({ slot, model, serial: known }));
  const { reason, severity, lastsMs = 0 } = sign;
  const pools = poolsOn(placed, slot);
  const finding = { reason, severity, slot, model, serial: known, pools, message };
  const before = seen.filter((old) => old.sign === sign && mayContinue({ uuid, finding }, old));
  const same = before.find((old) => serial !== undefined && old.serial === serial);
  const sinceMs = same?.sinceMs ?? atMs;
  const isFault = atMs - sinceMs >= lastsMs || before.some((old) => old.isFault);
  return { sign, uuid: uuid ?? before[0]?.uuid, serial, sinceMs, isFault, finding };
}

/** Whether two signs may be of the same disk, or the same file system. */
function mayContinue(
  now: Pick<SeenSign, "uuid" | "finding">,
  old: Pick<SeenSign, "sign" | "uuid" | "finding">,
): boolean {
  if (old.sign.of !== "disk" && areOther(now.uuid, old.uuid)) return false;
  const isSameOne = now.uuid !== undefined && now.uuid === old.uuid;
  return old.sign.of === "filesystem" && isSameOne || isMaybeSame(now.finding, old.finding);
}

/** Whether a reading says that a sign is not there any more. */
function isOver(
  { sign, uuid, finding }: SeenSign,
  { disks, filesystems }: HardwareReading,
  subjects: readonly Subject[],
): boolean {
  if (disks?.every((disk) => !isMaybeSame(disk, finding))) return true;
  if (sign.of === "disk") {
    return subjects.some((subject) =>
      isOf(sign, subject) && subject.disk.slot === finding.slot && sign.is(subject) === false
    );
  }
  const among = filesystems?.filter((one) =>
    !areOther(one.uuid, uuid) && (one.uuid !== undefined && uuid !== undefined ||
      (one.devices?.some(({ slot }) => slot === finding.slot) ?? true))
  );
  return among?.every((filesystem) => {
    const device = filesystem.devices?.find(({ slot }) => slot === finding.slot);
    if (sign.of === "device" && device === undefined) return filesystem.devices !== undefined;
    const disk = { slot: finding.slot };
    const found = subjects.find((one) => one.filesystem === filesystem && isOf(sign, one));
    return sign.is(found ?? { disk, filesystem, device, before: undefined }) === false;
  }) ?? false;
}

function areOther(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

type Named = Pick<HardwareDisk, "slot" | "model" | "serial">;

/** Whether what is in a slot may be what was in it before: its serial number says so, or as long as that is unknown its model. */
function isMaybeSame(now: Named, before: Named): boolean {
  if (now.slot !== before.slot) return false;
  const isKnown = now.serial !== undefined && before.serial !== undefined;
  return isKnown ? now.serial === before.serial : !areOther(now.model, before.model);
}

/** A reading with places and names as they were known last: so that a fault stays that of the same drive, and of its pools. */
function withKnownPlaces(reading: HardwareReading, before: HardwareReading): HardwareReading {
  const { disks = before.disks, filesystems = before.filesystems } = reading;
  return {
    disks: disks?.map((disk) => withKnownPlace(disk, before)),
    filesystems: filesystems?.map((filesystem) => {
      const known = before.filesystems?.find(({ uuid }) => uuid !== undefined && uuid === filesystem.uuid);
      return { ...filesystem, devices: filesystem.devices ?? known?.devices };
    }),
  };
}

function withKnownPlace(disk: HardwareDisk, before: HardwareReading): HardwareDisk {
  const known = before.disks?.find((one) => isMaybeSame(disk, one));
  if (known === undefined) return disk;
  return {
    ...disk,
    model: disk.model ?? known.model,
    serial: disk.serial ?? known.serial,
    mountPoint: disk.mountPoint ?? known.mountPoint,
    master: disk.master ?? known.master,
    parent: disk.parent ?? known.parent,
  };
}

/** One finding for each fault of a disk, whatever number of signs it has. */
function together(findings: readonly HardwareFinding[]): HardwareFinding[] {
  const faults = Map.groupBy(findings, ({ reason, slot }) => JSON.stringify([reason, slot]));
  return [...faults.values()].map((all) => ({
    ...all[0]!,
    message: [...new Set(all.map(({ message }) => message))].join("; "),
  }));
}

/** Slot, model and serial number, as far as they are known. */
export function described({ slot, model, serial }: Named): string {
  const parts = [
    ...model === undefined ? [] : [model],
    ...serial === undefined ? [] : [`serial ${serial}`],
  ];
  return parts.length === 0 ? slot : `${slot} (${parts.join(", ")})`;
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
      ...disks.filter((disk) => disk.slot === slot).flatMap(({ master }) => master || []),
      ...disks.filter(({ parent }) => parent === slot).map((disk) => disk.slot),
      ...beside.flat(),
    );
  }
  return disks.flatMap(({ slot, mountPoint }) => seen.has(slot) && mountPoint ? mountPoint : []);
}
