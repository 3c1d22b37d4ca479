/** What a drive itself warns of (NVMe specification, Critical Warning of the SMART log), in RouterOS's words. */
export const driveWarnings = [
  "spare-space",
  "temperature",
  "reliability-degraded",
  "read-only",
  "volatile-backup-failed",
] as const;

/** One warning of a drive. */
export type DriveWarning = typeof driveWarnings[number];

/**
 * A disk of the router that is not backed by a file: a drive, a partition or an array. Whatever the router does not
 * report in the expected form is undefined: unknown, and neither good nor bad.
 */
export interface HardwareDisk {
  readonly slot: string;
  /** RouterOS's word, such as `hardware`, `partition` or `raid`. */
  readonly kind?: string | undefined;
  readonly model?: string | undefined;
  readonly serial?: string | undefined;
  /** Its file system; "" where RouterOS recognises none. */
  readonly filesystem?: string | undefined;
  /** Where its file system is mounted, without slashes; "" where it is not. */
  readonly mountPoint?: string | undefined;
  /** Slot of the array that it is a member of; "" for none. */
  readonly master?: string | undefined;
  /** Slot of the drive that it is a partition of; "" for none. */
  readonly parent?: string | undefined;
  /** The router's text of an array, see `parseArrayState()`. */
  readonly state?: string | undefined;
  /** Whether its array has dropped it. */
  readonly memberFailed?: boolean | undefined;
  /** The array's text about it, such as `0:in_sync`. */
  readonly memberState?: string | undefined;
  /** Empty where the drive warns of nothing. */
  readonly warnings?: readonly DriveWarning[] | undefined;
  /** Spare blocks that are left, 0 to 100 %, and how many are too few by the drive's own measure. */
  readonly sparePercent?: number | undefined;
  readonly spareLimitPercent?: number | undefined;
  /** How much of its expected life is used, 0 to 255 %. */
  readonly usedPercent?: number | undefined;
  readonly celsius?: number | undefined;
  /** From which temperature the drive itself warns. */
  readonly limitCelsius?: number | undefined;
  /** Failed reads and writes since the router counts. */
  readonly ioErrors?: number | undefined;
}

/** The kinds of errors that Btrfs counts for each device. */
export const btrfsErrorKinds = ["write", "read", "flush", "corruption", "generation"] as const;

/** One of them. */
export type BtrfsErrorKind = typeof btrfsErrorKinds[number];

/** A device of a Btrfs file system. */
export interface BtrfsDevice {
  /** Its slot; undefined for a lost one. */
  readonly slot: string | undefined;
  /** Its counters; one that is unknown is absent. */
  readonly errors: Readonly<Partial<Record<BtrfsErrorKind, number>>>;
}

/** A Btrfs file system. */
export interface BtrfsFilesystem {
  readonly uuid?: string | undefined;
  readonly label?: string | undefined;
  /** In the router's order; undefined where the router does not name them. */
  readonly devices?: readonly BtrfsDevice[] | undefined;
  /** Whether the router says that a device is missing, be it in the list or not. */
  readonly missing?: boolean | undefined;
  /** What it does besides serving, in the router's words, such as `scrub running`. */
  readonly activity: readonly string[];
}

/** A reading of the router's arrays, drives and Btrfs file systems; undefined for what it refused to report. */
export interface HardwareReading {
  readonly disks?: readonly HardwareDisk[] | undefined;
  readonly filesystems?: readonly BtrfsFilesystem[] | undefined;
}

/** The kinds of faults. */
export const hardwareReasons = [
  "ArrayUnsound",
  "MemberFailed",
  "BtrfsDeviceMissing",
  "DriveUnreliable",
  "DriveReadOnly",
  "DriveWarning",
  "DriveSpareLow",
  "DriveWorn",
  "DriveHot",
  "ErrorsRose",
] as const;

/** One of them. */
export type HardwareReason = typeof hardwareReasons[number];

/** A fault of an array, a drive or a Btrfs file system. */
export interface HardwareFinding {
  readonly reason: HardwareReason;
  /** With a critical one the volumes on its pools are degraded. */
  readonly severity: "critical" | "warning";
  /** Slot of the array or drive; the first known disk of a Btrfs file system with a lost device. */
  readonly slot: string;
  readonly model?: string | undefined;
  readonly serial?: string | undefined;
  /** Mount points of the pools on it; none for a drive that no pool uses. */
  readonly pools: readonly string[];
  /** What is wrong, for people, with slot, model and serial. */
  readonly message: string;
}

/** A reading with its faults, and when it was made (`Clock.now()`). */
export interface JudgedHardware {
  readonly reading: HardwareReading;
  readonly findings: readonly HardwareFinding[];
  readonly atMs: number;
}
