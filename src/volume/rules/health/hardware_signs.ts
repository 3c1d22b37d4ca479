import {
  type BtrfsDevice,
  type BtrfsErrorKind,
  btrfsErrorKinds,
  type BtrfsFilesystem,
  type DriveWarning,
  type HardwareDisk,
  type HardwareFinding,
} from "../../model/health/hardware.ts";
import { parseArrayState } from "../array_state.ts";

/** What a sign may be of: a disk, a Btrfs file system on it, or the disk as a device of that. */
export interface Subject {
  /** As the router has just reported it. */
  readonly disk: HardwareDisk;
  readonly filesystem?: BtrfsFilesystem | undefined;
  readonly device?: BtrfsDevice | undefined;
  /** Its counters of errors as they were known last; undefined while it is unknown whose they are. */
  readonly before: ReadonlyMap<CounterKind, number> | undefined;
}

/** The kinds of counters: those of a disk itself, and of it as a device of a Btrfs file system. */
export type CounterKind = "io" | BtrfsErrorKind;

/** Returns a counter as the router has just reported it; undefined where it is unknown. */
export function countOf({ disk, device }: Subject, kind: CounterKind): number | undefined {
  return kind === "io" ? disk.ioErrors : device?.errors[kind];
}

/** One sign of a fault. A fault may have several, and each of them ends by its own values alone. */
export interface Sign extends Pick<HardwareFinding, "reason" | "severity"> {
  readonly of: "disk" | "filesystem" | "device";
  /** For how long every reading has to show it before it is a fault, in milliseconds. @default {0} */
  readonly lastsMs?: number;
  /** Whether it is there; undefined where the values that tell are unknown. */
  is(subject: Subject): boolean | undefined;
  /** What is wrong, for people. @param name slot, model and serial number of the disk */
  says(subject: Subject, name: string): string;
}

/** A single hot reading may be a burst of writes. */
const hot = { reason: "DriveHot", severity: "warning", of: "disk", lastsMs: 15 * 60_000 } as const;
const failed = { reason: "MemberFailed", severity: "critical", of: "disk" } as const;
const spareLow = { reason: "DriveSpareLow", severity: "warning", of: "disk" } as const;
const rose = { reason: "ErrorsRose", severity: "warning" } as const;
const lost = { reason: "BtrfsDeviceMissing", severity: "critical", of: "filesystem" } as const;

/** All signs. Only a drive's own limits count. */
export const signs: readonly Sign[] = [
  {
    ...{ reason: "ArrayUnsound", severity: "critical", of: "disk" },
    is: ({ disk: { kind, state } }) =>
      kind === undefined || state === undefined
        ? undefined
        : kind === "raid" && !parseArrayState(state).sound,
    says: ({ disk }, name) => `the array ${name} is ${disk.state}`,
  },
  { ...failed, is: ({ disk }) => disk.memberFailed ?? outOfArray(disk), says: saysFailed },
  {
    ...failed,
    is: ({ disk }) => disk.memberState === undefined ? outOfArray(disk) : /\bfaulty\b/.test(disk.memberState),
    says: saysFailed,
  },
  {
    ...{ reason: "DriveUnreliable", severity: "critical", of: "disk" },
    is: warnsOf("reliability-degraded"),
    says: (_, name) => `${name} says that it is not reliable any more`,
  },
  {
    ...{ reason: "DriveReadOnly", severity: "critical", of: "disk" },
    is: warnsOf("read-only"),
    says: (_, name) => `${name} takes no writes any more`,
  },
  {
    ...{ reason: "DriveWarning", severity: "warning", of: "disk" },
    is: warnsOf("volatile-backup-failed"),
    says: (_, name) => `${name} warns of volatile-backup-failed`,
  },
  {
    ...spareLow,
    is: ({ disk: { sparePercent, spareLimitPercent } }) =>
      sparePercent === undefined || spareLimitPercent === undefined
        ? undefined
        : sparePercent <= spareLimitPercent,
    says: saysSpare,
  },
  { ...spareLow, is: warnsOf("spare-space"), says: saysSpare },
  {
    ...{ reason: "DriveWorn", severity: "warning", of: "disk" },
    is: ({ disk: { usedPercent } }) => usedPercent === undefined ? undefined : usedPercent >= 100,
    says: ({ disk }, name) => `${name} has used ${disk.usedPercent} % of its expected life`,
  },
  {
    ...hot,
    is: ({ disk: { celsius, limitCelsius } }) =>
      celsius === undefined || limitCelsius === undefined ? undefined : celsius > limitCelsius,
    says: saysHot,
  },
  { ...hot, is: warnsOf("temperature"), says: saysHot },
  {
    ...{ ...rose, of: "disk" },
    is: (subject) => isRise(riseOf(subject, "io")),
    says: (subject, name) => `${name} had ${riseOf(subject, "io")} more errors of reads and writes`,
  },
  { ...lost, is: ({ filesystem }) => filesystem?.missing ?? nothingLost(filesystem), says: saysLost },
  {
    ...lost,
    is: ({ filesystem }) =>
      filesystem?.devices?.some(({ slot }) => slot === undefined) ?? nothingLost(filesystem),
    says: saysLost,
  },
  ...btrfsErrorKinds.map((kind): Sign => ({
    ...{ ...rose, of: "device" },
    is: (subject) => isRise(riseOf(subject, kind)),
    says: (subject, name) => `${name} had ${riseOf(subject, kind)} more ${kind} errors, which Btrfs counts`,
  })),
];

/** A drive that was taken out of its array may stay in the box: nothing is reported of a member then. */
function outOfArray({ master }: HardwareDisk): false | undefined {
  return master === "" ? false : undefined;
}

function saysFailed({ disk: { master } }: Subject, name: string): string {
  return `${name} has failed as a member of ${master ? `the array ${master}` : "its array"}`;
}

function warnsOf(warning: DriveWarning): Sign["is"] {
  return ({ disk }) => disk.warnings?.includes(warning);
}

function saysSpare({ disk: { sparePercent, spareLimitPercent } }: Subject, name: string): string {
  const isKnown = sparePercent !== undefined && spareLimitPercent !== undefined;
  const left = isKnown ? `: ${sparePercent} % are left, its limit is ${spareLimitPercent} %` : "";
  return `${name} runs out of spare blocks${left}`;
}

function saysHot({ disk: { celsius, limitCelsius } }: Subject, name: string): string {
  const limit = limitCelsius === undefined ? "" : `, its own limit is ${limitCelsius} °C`;
  return `${name} is too hot${celsius === undefined ? "" : `: ${celsius} °C${limit}`}`;
}

/** The router says in two ways whether a device is missing: one of them is enough. */
function nothingLost(filesystem: BtrfsFilesystem | undefined): false | undefined {
  const isListed = filesystem?.devices?.every(({ slot }) => slot !== undefined) ?? false;
  return isListed || filesystem?.missing === false ? false : undefined;
}

function saysLost({ filesystem }: Subject, name: string): string {
  const label = filesystem?.label === undefined ? "" : ` with the label ${filesystem.label}`;
  return `a device of the Btrfs file system${label} on ${name} is missing`;
}

/** Counters begin anew after a boot, and a person may reset them. Undefined where it is unknown. */
function riseOf(subject: Subject, kind: CounterKind): number | undefined {
  const now = countOf(subject, kind);
  if (now === undefined || subject.before === undefined) return undefined;
  return Math.max(0, now - (subject.before.get(kind) ?? now));
}

function isRise(rise: number | undefined): boolean | undefined {
  return rise === undefined ? undefined : rise > 0;
}
