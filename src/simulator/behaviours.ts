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

/** How a simulated router behaves: the answers that the driver knows, and what the driver must not depend on. */
export interface Behaviours extends RouterBehaviours {
  /** SSH connections at a time. */
  readonly maxSessions: number;
  /** Whether sessions take turns between the statements of a line, and between a `[find]` and its verb. */
  readonly interleave: boolean;
  /** What `set`, `remove`, `enable` and `disable` do with a `[find]` that found nothing. */
  readonly emptyFind: "silent" | "item-id-error" | "no-such-item";
  /** What `/disk add` does with a slot that is taken: refuse, or choose another one in silence. */
  readonly duplicateSlot: "refused" | "renamed";
  /** Exit status of an exec that failed. */
  readonly exitOnError: 0 | 1;
  /** Where the text of a failure goes. */
  readonly errorStream: "stdout" | "stderr";
  /** Whether a runtime failure names its command and line behind the text. */
  readonly errorPlace: boolean;
  /** Whether failures are worded as on a router, or at random. */
  readonly errorText: "known" | "random";
  /** Line ends of everything printed. */
  readonly lineEnd: "crlf" | "lf";
  /** Whether every exec prints a line of noise first. */
  readonly noise: boolean;
  /** Whether `add` makes a missing parent directory. */
  readonly parentDirectory: "must-exist" | "made";
  /** What `/disk add` does with a file whose size is not the `file-size` given. */
  readonly otherSize: "refused" | "kept" | "resized";
  /** How `as-value` gives numbers. */
  readonly numbers: "number" | "text";
  /** How `as-value` gives booleans. */
  readonly booleans: "boolean" | "yes-no";
  /** How `as-value` gives `file-size`. */
  readonly fileSize: "bytes" | "human" | "absent";
}

/** What the simulator does unless it is told otherwise. */
export const defaultBehaviours: Behaviours = {
  ...defaultRouterBehaviours,
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
  otherSize: "refused",
  numbers: "number",
  booleans: "boolean",
  fileSize: "bytes",
};

const readers: Readers<Behaviours> = {
  ...answerReaders,
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
  otherSize: oneOf("refused", "kept", "resized"),
  numbers: oneOf("number", "text"),
  booleans: oneOf("boolean", "yes-no"),
  fileSize: oneOf("bytes", "human", "absent"),
};

/**
 * Reads behaviours as they come from a command line or as JSON.
 *
 * @throws {RangeError} when a name or a value is none
 */
export function parseBehaviours(settings: Readonly<Record<string, unknown>>): Partial<Behaviours> {
  return parseSettings(readers, settings);
}
