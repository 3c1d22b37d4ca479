import {
  answerReaders,
  defaultRouterBehaviours,
  limit,
  oneOf,
  parseSettings,
  type Readers,
  type RouterBehaviours,
  yesNo,
} from "../router_profile/answers.ts";

/**
 * How a simulated router behaves: the answers that the driver knows, and behaviours on which the driver must not
 * depend.
 */
export interface Behaviours extends RouterBehaviours {
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
  /** How `/disk add` treats a file whose size is not the given `file-size`. */
  readonly otherSize: "refused" | "kept" | "resized";
  /** The free space of a pool is printed in steps of so many bytes. */
  readonly freeStep: number;
}

/** The default behaviours. */
export const defaultBehaviours: Behaviours = {
  ...defaultRouterBehaviours,
  identity: "new-per-export",
  maxSessions: 20,
  interleave: false,
  emptyFind: "silent",
  duplicateSlot: "refused",
  output: "plain",
  directoryRemoval: "recursive",
  otherSize: "refused",
  freeStep: 1,
};

const readers: Readers<Behaviours> = {
  ...answerReaders,
  identity: oneOf("kept", "new-per-export"),
  maxSessions: limit,
  interleave: yesNo,
  emptyFind: oneOf("silent", "item-id-error"),
  duplicateSlot: oneOf("refused", "renamed"),
  output: oneOf("plain", "hostile"),
  directoryRemoval: oneOf("recursive", "must-be-empty"),
  otherSize: oneOf("refused", "kept", "resized"),
  freeStep: limit,
};

/**
 * Parses behaviours from a command line or JSON.
 *
 * @throws {RangeError} when a name is unknown or a value invalid
 */
export function parseBehaviours(settings: Readonly<Record<string, unknown>>): Partial<Behaviours> {
  return parseSettings(readers, settings);
}
