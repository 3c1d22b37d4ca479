import {
  answerReaders,
  defaultRouterBehaviours,
  oneOf,
  parseSettings,
  type Reader,
  type Readers,
  type RouterBehaviours,
} from "../router_profile/answers.ts";

/**
 * How a simulated router behaves: the answers that the driver knows, and behaviours on which the driver must not
 * depend.
 */
export interface Behaviours extends Omit<RouterBehaviours, "limits" | "grow"> {
  /** Longest slot name, in characters. */
  readonly maxSlot: number;
  /** Longest comment that the router keeps, in bytes; it cuts off a longer one silently. */
  readonly maxComment: number;
  /** Longest subsystem NQN that the router keeps, in bytes; it cuts off a longer one silently. */
  readonly maxNqn: number;
  /** The most that one `:put` prints, in bytes; the rest is cut off silently. */
  readonly maxPut: number;
  /** Longest exec request that the router accepts, in bytes; it refuses a longer one. */
  readonly maxCommand: number;
  /** When the size of an exported disk follows a resize; with `never` the router accepts the resize, and nothing grows. */
  readonly grow: "live" | "after-toggle" | "never";
  /** How much later than the router itself its file disks are back after a boot, in milliseconds. */
  readonly disksLate: number;
  /** Whether free space falls by the written data, or by the full size at once; a copy shares its blocks, or does not. */
  readonly allocation: "sparse" | "full";
  /** Whether `/disk add` accepts an existing file and keeps its data. */
  readonly adopt: "kept" | "refused";
  /** Whether a subvolume can be removed while there are snapshots of it. */
  readonly subvolumeParent: "free" | "held";
  /**
   * Whether a namespace keeps its UUID when its export is toggled, so that hosts come back and go on, or gets a new one
   * each time, so that hosts drop it.
   */
  readonly identity: "kept" | "new-per-export";
  /** SSH connections at a time. */
  readonly maxSessions: number;
  /** Whether sessions take turns between the statements of a line, and between a `[find]` and its verb. */
  readonly interleave: boolean;
  /** The result of `set`, `remove`, `enable` and `disable` for a `[find]` that found nothing. */
  readonly emptyFind: "silent" | "item-id-error";
  /** How `/disk add` treats a taken slot: it refuses, or silently chooses another one. */
  readonly duplicateSlot: "refused" | "renamed";
  /**
   * What everything printed looks like: as a router prints it, or in the hardest form for a client. Then each exec
   * prints a line of noise first; failures have random texts, name their command and line, go to stderr and exit with
   * 1; lines end with LF alone; numbers and booleans are words, and `file-size` is rounded.
   */
  readonly output: "plain" | "hostile";
  /** Whether `/file remove` removes a directory with everything in it, or refuses one that is not empty. */
  readonly directoryRemoval: "recursive" | "must-be-empty";
  /**
   * Which names of its hardware the router knows: all, none of SMART, or neither those nor members of arrays and
   * `/disk/btrfs/filesystem`. An unknown name voids the whole line.
   */
  readonly hardwareNames: "all" | "no-smart" | "none";
  /** How `/disk add` treats a file whose size is not the given `file-size`. */
  readonly otherSize: "refused" | "kept" | "resized";
  /** The free space of a pool is printed in steps of so many bytes. */
  readonly freeStep: number;
}

/** The default of each behaviour on which the driver must not depend, and how it is parsed. */
const own: Readonly<{ [Name in OwnName]: readonly [fallback: Behaviours[Name], Reader<Behaviours[Name]>] }> =
  {
    maxSlot: [Infinity, limit],
    maxComment: [255, limit],
    maxNqn: [223, limit],
    maxPut: [Infinity, limit],
    maxCommand: [Infinity, limit],
    grow: [defaultRouterBehaviours.grow, oneOf("live", "after-toggle", "never")],
    disksLate: [0, limit],
    allocation: ["sparse", oneOf("sparse", "full")],
    adopt: ["kept", oneOf("kept", "refused")],
    subvolumeParent: ["free", oneOf("free", "held")],
    identity: ["new-per-export", oneOf("kept", "new-per-export")],
    maxSessions: [20, limit],
    interleave: [false, yesNo],
    emptyFind: ["silent", oneOf("silent", "item-id-error")],
    duplicateSlot: ["refused", oneOf("refused", "renamed")],
    output: ["plain", oneOf("plain", "hostile")],
    directoryRemoval: ["recursive", oneOf("recursive", "must-be-empty")],
    hardwareNames: ["all", oneOf("all", "no-smart", "none")],
    otherSize: ["refused", oneOf("refused", "kept", "resized")],
    freeStep: [1, limit],
  };

type OwnName = Exclude<keyof Behaviours, keyof Omit<RouterBehaviours, "grow">>;

const { limits: _default, ...routerDefaults } = defaultRouterBehaviours;
const { limits: _reader, ...routerReaders } = answerReaders;

/** The default behaviours. */
export const defaultBehaviours = {
  ...routerDefaults,
  ...Object.fromEntries(Object.entries(own).map(([name, [fallback]]) => [name, fallback])),
} as Behaviours;

const readers = {
  ...routerReaders,
  ...Object.fromEntries(Object.entries(own).map(([name, [, read]]) => [name, read])),
} as Readers<Behaviours>;

/**
 * Parses behaviours from a command line or JSON.
 *
 * @throws {RangeError} when a name is unknown or a value invalid
 */
export function parseBehaviours(settings: Readonly<Record<string, unknown>>): Partial<Behaviours> {
  return parseSettings(readers, settings);
}

/** Converts behaviours so that {@linkcode parseBehaviours} can read them, also after JSON, which cannot represent Infinity. */
export function printableBehaviours(behaviours: Behaviours): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(behaviours).map(([name, value]) => [name, value === Infinity ? "unlimited" : value]),
  );
}

function limit(text: string): number | undefined {
  if (text === "unlimited" || text === "Infinity") return Infinity;
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

function yesNo(text: string): boolean | undefined {
  if (text === "yes" || text === "true") return true;
  if (text === "no" || text === "false") return false;
  return undefined;
}
