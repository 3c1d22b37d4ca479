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
  readonly emptyFind: "silent" | "item-id-error" | "no-such-item";
  /** How `/disk add` treats a taken slot: it refuses, or silently chooses another one. */
  readonly duplicateSlot: "refused" | "renamed";
  /** Exit status of an exec that failed. */
  readonly exitOnError: 0 | 1;
  /** Where the text of a failure is printed. */
  readonly errorStream: "stdout" | "stderr";
  /** Whether a runtime failure names its command and line after the text. */
  readonly errorPlace: boolean;
  /** Whether failures have the texts of a router, or random ones. */
  readonly errorText: "known" | "random";
  /** Line ends of everything printed. */
  readonly lineEnd: "crlf" | "lf";
  /** Whether every exec prints a line of noise first. */
  readonly noise: boolean;
  /** Whether `add` makes a missing parent directory. */
  readonly parentDirectory: "must-exist" | "made";
  /** Whether `/file remove` removes a directory with everything in it, or refuses one that is not empty. */
  readonly directoryRemoval: "recursive" | "must-be-empty";
  /** How `/disk add` treats a file whose size is not the given `file-size`. */
  readonly otherSize: "refused" | "kept" | "resized";
  /** How `as-value` prints numbers. */
  readonly numbers: "number" | "text";
  /** How `as-value` prints booleans. */
  readonly booleans: "boolean" | "yes-no";
  /** How `as-value` prints `file-size`. */
  readonly fileSize: "bytes" | "human" | "absent";
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
  exitOnError: 0,
  errorStream: "stdout",
  errorPlace: false,
  errorText: "known",
  lineEnd: "crlf",
  noise: false,
  parentDirectory: "must-exist",
  directoryRemoval: "recursive",
  otherSize: "refused",
  numbers: "number",
  booleans: "boolean",
  fileSize: "bytes",
  freeStep: 1,
};

const readers: Readers<Behaviours> = {
  ...answerReaders,
  identity: oneOf("kept", "new-per-export"),
  maxSessions: limit,
  interleave: yesNo,
  emptyFind: oneOf("silent", "item-id-error", "no-such-item"),
  duplicateSlot: oneOf("refused", "renamed"),
  exitOnError: (text) => text === "0" ? 0 : text === "1" ? 1 : undefined,
  errorStream: oneOf("stdout", "stderr"),
  errorPlace: yesNo,
  errorText: oneOf("known", "random"),
  lineEnd: oneOf("crlf", "lf"),
  noise: yesNo,
  parentDirectory: oneOf("must-exist", "made"),
  directoryRemoval: oneOf("recursive", "must-be-empty"),
  otherSize: oneOf("refused", "kept", "resized"),
  numbers: oneOf("number", "text"),
  booleans: oneOf("boolean", "yes-no"),
  fileSize: oneOf("bytes", "human", "absent"),
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
