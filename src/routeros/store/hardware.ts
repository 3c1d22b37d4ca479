import {
  type BtrfsDevice,
  type BtrfsErrorKind,
  btrfsErrorKinds,
  type BtrfsFilesystem,
  type DriveWarning,
  driveWarnings,
  type HardwareDisk,
} from "../../volume/model/health/hardware.ts";
import { printable } from "../../volume/model/printable.ts";
import { type Fragment, ros } from "../console/command.ts";
import { parseRows, type Row } from "../console/json.ts";

/** Every disk without a backing file, with what its drive reports of itself (SMART). */
export const hardwareQuery: Fragment =
  ros`/disk print as-value proplist=slot,type,model,serial,fs,mounted,mount-point,parent,state,raid-master,raid-member-failed,raid-member-state,io-errors,temperature,warning-temperature,critical-temperature,critical-warning,available-spare,available-spare-threshold,percentage-used where type!=${"file"}`;

/** The same without what an older router may not know: one unknown name voids a whole command. */
export const arraysQuery: Fragment =
  ros`/disk print as-value proplist=slot,type,model,serial,fs,mounted,mount-point,parent,state,raid-master,raid-member-failed,raid-member-state where type!=${"file"}`;

/** The Btrfs file systems, in a command of its own: an older router does not know the menu. */
export const filesystemsQuery: Fragment = ros`/disk/btrfs/filesystem print detail as-value`;

/** The most items that are kept, and the longest text of one: no router has as many drives. */
const maxItems = 256;
const maxText = 64;

/**
 * Parses a frame of `hardwareQuery` or `arraysQuery`. What is absent, of another type or out of range is undefined, and a
 * row without a slot is left out.
 *
 * @throws {VolumeError} unavailable when it is no list
 */
export function parseHardware(frame: string): HardwareDisk[] {
  return parseRows(frame, "list of drives").slice(0, maxItems).flatMap((row) => {
    const slot = textOf(row, "slot");
    return slot === undefined ? [] : [{ slot, ...placeOf(row), ...healthOf(row) }];
  });
}

function placeOf(row: Row): Omit<HardwareDisk, "slot"> {
  const mountPoint = row.find("mount-point")?.replace(/^\/+|\/+$/g, "") || undefined;
  const isMounted = row.findFlag("mounted");
  return {
    kind: textOf(row, "type"),
    model: nameOf(row, "model") || undefined,
    serial: nameOf(row, "serial") || undefined,
    filesystem: nameOf(row, "fs"),
    mountPoint: isMounted === false ? "" : isMounted && mountPoint,
    master: nameOf(row, "raid-master"),
    parent: nameOf(row, "parent"),
    state: stateOf(row),
    memberFailed: row.findFlag("raid-member-failed"),
    memberState: textOf(row, "raid-member-state"),
  };
}

/** A number is no state of an array. */
function stateOf(row: Row): string | undefined {
  const words = wordsOf(row, "state");
  return words?.some((word) => /^-?[0-9]+$/.test(word)) ? undefined : words?.join(", ");
}

/** A drive that does not report a limit of its temperature reports 0 (NVMe specification, WCTEMP and CCTEMP). */
function healthOf(row: Row): Omit<HardwareDisk, "slot"> {
  const limits = ["warning-temperature", "critical-temperature"].flatMap((key) =>
    numberOf(row, key, 1, 200) ?? []
  );
  return {
    warnings: warningsOf(row),
    sparePercent: numberOf(row, "available-spare", 0, 100),
    spareLimitPercent: numberOf(row, "available-spare-threshold", 0, 100),
    usedPercent: numberOf(row, "percentage-used", 0, 255),
    celsius: numberOf(row, "temperature", -60, 200),
    limitCelsius: limits.length === 0 ? undefined : Math.min(...limits),
    ioErrors: numberOf(row, "io-errors", 0),
  };
}

/** A warning of another name is left out, and "none" is none; a mask of bits is unknown. */
function warningsOf(row: Row): DriveWarning[] | undefined {
  const words = wordsOf(row, "critical-warning");
  if (words === undefined || words.some((word) => /^[0-9]/.test(word))) return undefined;
  return driveWarnings.filter((warning) => words.includes(warning));
}

/**
 * Parses a frame of `filesystemsQuery`, in the same way.
 *
 * @throws {VolumeError} unavailable when it is no list
 */
export function parseFilesystems(frame: string): BtrfsFilesystem[] {
  return parseRows(frame, "list of Btrfs file systems").slice(0, maxItems).map((row) => {
    return {
      uuid: textOf(row, "uuid"),
      label: textOf(row, "label"),
      devices: devicesOf(row),
      missing: row.findFlag("missing-devs"),
      activity: [
        ...activityOf(row, "scrub", "scrubbing"),
        ...activityOf(row, "balance", "balancing"),
        ...activityOf(row, "replace", "replacing"),
      ],
    };
  });
}

/** The lists have one entry a device; `missing` stands for a lost one. */
function devicesOf(row: Row): BtrfsDevice[] | undefined {
  const names = partsOf(row, "devs");
  // A file system without a device is none, and a device without a name unknown.
  if (names === undefined || names.length === 0 || names.includes("")) return undefined;
  const lists = new Map<BtrfsErrorKind, readonly (number | undefined)[]>();
  for (const kind of btrfsErrorKinds) {
    const counts = partsOf(row, `${kind}-errors`)?.map((word) => wholeNumber(word, 0));
    if (counts?.length === names.length) lists.set(kind, counts);
  }
  return names.map((name, at) => ({
    slot: name === "missing" ? undefined : name,
    errors: Object.fromEntries(
      [...lists].flatMap(([kind, counts]) => counts[at] === undefined ? [] : [[kind, counts[at]]]),
    ),
  }));
}

/** Only while it runs: what was done long ago is no activity. */
function activityOf(row: Row, what: string, flag: string): string[] {
  if (row.findFlag(flag) !== true) return [];
  const status = textOf(row, `${what}-status`);
  return [status === undefined ? what : `${what}: ${status}`];
}

/** A text for people; undefined when it is missing, empty or no text. */
function textOf(row: Row, key: string): string | undefined {
  const text = printable(row.find(key) ?? "").trim().slice(0, maxText);
  return text === "" ? undefined : text;
}

/** A name, or "" where the router says that there is none; undefined where that is unknown. */
function nameOf(row: Row, key: string): string | undefined {
  const text = row.find(key)?.trim();
  return text === "" || text === "none" || text === "-" ? "" : textOf(row, key);
}

/** The parts of a list that are not empty. */
function wordsOf(row: Row, key: string): string[] | undefined {
  return partsOf(row, key)?.filter((word) => word !== "");
}

/** The parts of a list, of a text with commas or semicolons, or a number alone. */
function partsOf(row: Row, key: string): string[] | undefined {
  return row.findAny(key, (value) => {
    const parts = Array.isArray(value) ? value : typeof value === "string" ? value.split(/[,;]/) : [value];
    const words = parts.map((part) =>
      typeof part === "string"
        ? printable(part).trim().slice(0, maxText)
        : typeof part === "bigint"
        ? String(part)
        : undefined
    );
    const known = words.filter((word) => word !== undefined);
    return known.length < words.length ? undefined : known.slice(0, maxItems);
  });
}

function numberOf(row: Row, key: string, min: number, max?: number): number | undefined {
  return row.findAny(key, (value) => wholeNumber(value, min, max));
}

/** A whole number or its digits, within the bounds. */
function wholeNumber(value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const digits = typeof value === "bigint" || typeof value === "string" ? String(value) : "";
  if (!/^-?[0-9]{1,16}$/.test(digits)) return undefined;
  const number = Number(digits);
  return number >= min && number <= max ? number : undefined;
}
