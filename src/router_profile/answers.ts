/**
 * What is unknown about a router, or differs between routers: each property is one such question, its value an answer.
 * `doctor --probe` asks them, the simulator's knobs play them, and the driver is right whatever they are.
 */
export interface RouterAnswers {
  /** Longest slot name, in characters. */
  readonly maxSlot: number;
  /** Longest comment that survives, in bytes; what is longer is cut off silently. */
  readonly maxComment: number;
  /** Longest subsystem NQN that survives, in bytes; what is longer is cut off silently. */
  readonly maxNqn: number;
  /** Most that one `:put` prints, in bytes; the rest is cut off silently. */
  readonly maxPut: number;
  /** SSH connections at a time. */
  readonly maxSessions: number;
  /** Longest exec request that is taken, in bytes; a longer one is refused. */
  readonly maxCommand: number;
  /** Whether sessions take turns between the statements of a line, and between a `[find]` and its verb. */
  readonly interleave: boolean;
  /** What `set`, `remove`, `enable` and `disable` do with a `[find]` that found nothing. */
  readonly emptyFind: "silent" | "item-id-error" | "no-such-item";
  /** What `/disk add` does with a slot that is taken: refuse, or choose another one in silence. */
  readonly duplicateSlot: "refused" | "renamed";
  /** Whether `where x="…"` tells capitals from small letters. */
  readonly textMatch: "exact" | "ignore-case";
  /** What `where` does with a property that does not exist. */
  readonly unknownProperty: "error" | "nothing";
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
  /** When the size of an exported disk follows a resize. */
  readonly grow: "live" | "after-toggle" | "never";
  /** How long a withdrawn export goes on serving those who are connected, in milliseconds. */
  readonly unexport: number;
  /** What `nvme-tcp-server-allow-host-name` is: a list of host NQNs with commas, a single one, or without effect. */
  readonly allowHost: "list" | "single" | "ignored";
  /** How much later than the router itself its file disks are back after a boot, in milliseconds. */
  readonly disksLate: number;
  /** Whether `add` makes a missing parent directory. */
  readonly parentDirectory: "must-exist" | "made";
  /** Whether free space falls by what is written, or by the full size at once. */
  readonly allocation: "sparse" | "full";
  /** Whether `/disk add` takes over a file that is there already. */
  readonly adopt: "kept" | "refused";
  /** What `/disk add` does with a file whose size is not the `file-size` given. */
  readonly otherSize: "refused" | "kept" | "resized";
  /** What becomes of a `file-size` that is no multiple of 512. */
  readonly oddSize: "kept" | "rounded" | "refused";
  /** What `/file remove` does with a file that a disk still uses. */
  readonly attachedFile: "removed" | "refused";
  /** Whether `/file copy` shares its blocks with the original. */
  readonly copy: "reflink" | "full";
  /** Whether `/file copy` answers when the copy is whole, or at once. */
  readonly copyReturns: "when-done" | "at-once";
  /** Where a Btrfs subvolume may be made: at any path of its file system, or at its top only. */
  readonly subvolumeNames: "nested" | "flat";
  /** Whether a subvolume can be removed while there are snapshots of it. */
  readonly subvolumeParent: "free" | "held";
  /** How `as-value` gives numbers. */
  readonly numbers: "number" | "text";
  /** How `as-value` gives booleans. */
  readonly booleans: "boolean" | "yes-no";
  /** How `as-value` gives `file-size`. */
  readonly fileSize: "bytes" | "human" | "absent";
}

/** A router that does what is known, and where nothing is known what asks most of its client, short of malice. */
export const defaultAnswers: RouterAnswers = {
  maxSlot: Infinity,
  maxComment: 255,
  maxNqn: 223,
  maxPut: Infinity,
  maxSessions: 20,
  maxCommand: Infinity,
  interleave: false,
  emptyFind: "silent",
  duplicateSlot: "refused",
  textMatch: "exact",
  unknownProperty: "error",
  exitOnError: 0,
  errorStream: "stdout",
  errorPlace: false,
  errorText: "known",
  lineEnd: "crlf",
  noise: false,
  grow: "live",
  unexport: 0,
  allowHost: "list",
  disksLate: 0,
  parentDirectory: "must-exist",
  allocation: "sparse",
  adopt: "kept",
  otherSize: "refused",
  oddSize: "kept",
  attachedFile: "removed",
  copy: "reflink",
  copyReturns: "when-done",
  subvolumeNames: "nested",
  subvolumeParent: "free",
  numbers: "number",
  booleans: "boolean",
  fileSize: "bytes",
};

type Reader<T> = (text: string) => T | undefined;

const readers: { readonly [Name in keyof RouterAnswers]: Reader<RouterAnswers[Name]> } = {
  maxSlot: limit,
  maxComment: limit,
  maxNqn: limit,
  maxPut: limit,
  maxSessions: limit,
  maxCommand: limit,
  interleave: yesNo,
  emptyFind: oneOf("silent", "item-id-error", "no-such-item"),
  duplicateSlot: oneOf("refused", "renamed"),
  textMatch: oneOf("exact", "ignore-case"),
  unknownProperty: oneOf("error", "nothing"),
  exitOnError: (text) => text === "0" ? 0 : text === "1" ? 1 : undefined,
  errorStream: oneOf("stdout", "stderr"),
  errorPlace: yesNo,
  errorText: oneOf("known", "random"),
  lineEnd: oneOf("crlf", "lf"),
  noise: yesNo,
  grow: oneOf("live", "after-toggle", "never"),
  unexport: lingering,
  allowHost: oneOf("list", "single", "ignored"),
  disksLate: limit,
  parentDirectory: oneOf("must-exist", "made"),
  allocation: oneOf("sparse", "full"),
  adopt: oneOf("kept", "refused"),
  otherSize: oneOf("refused", "kept", "resized"),
  oddSize: oneOf("kept", "rounded", "refused"),
  attachedFile: oneOf("removed", "refused"),
  copy: oneOf("reflink", "full"),
  copyReturns: oneOf("when-done", "at-once"),
  subvolumeNames: oneOf("nested", "flat"),
  subvolumeParent: oneOf("free", "held"),
  numbers: oneOf("number", "text"),
  booleans: oneOf("boolean", "yes-no"),
  fileSize: oneOf("bytes", "human", "absent"),
};

/**
 * Reads answers as they come from a command line or as JSON. Words may be joined by blanks instead of hyphens;
 * a limit is a number or `unlimited`; `unexport` is `kills` or `lingers <milliseconds>`.
 *
 * @throws {RangeError} when a name or a value is none.
 */
export function parseAnswers(settings: Readonly<Record<string, unknown>>): Partial<RouterAnswers> {
  return Object.assign({}, ...Object.entries(settings).map(([name, value]) => parseAnswer(name, value)));
}

function parseAnswer(name: string, value: unknown): Partial<RouterAnswers> {
  if (!Object.hasOwn(readers, name)) {
    throw new RangeError(`There is no question ${name}; there are ${Object.keys(readers).join(", ")}.`);
  }
  const text = String(value).trim().replaceAll(" ", "-");
  const read = readers[name as keyof RouterAnswers](text);
  if (read === undefined) {
    throw new RangeError(`${JSON.stringify(value)} is no answer to the question ${name}.`);
  }
  return { [name]: read };
}

/** Writes answers so that {@linkcode parseAnswers} reads them, also after JSON has dropped what it cannot write. */
export function printableAnswers(answers: Partial<RouterAnswers>): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(answers).map(([name, value]) => [name, value === Infinity ? "unlimited" : value]),
  );
}

function oneOf<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (text) => words.find((word) => word === text);
}

function yesNo(text: string): boolean | undefined {
  if (text === "yes" || text === "true") return true;
  if (text === "no" || text === "false") return false;
  return undefined;
}

function limit(text: string): number | undefined {
  if (text === "unlimited" || text === "Infinity") return Infinity;
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

function lingering(text: string): number | undefined {
  if (text === "kills") return 0;
  const match = /^(?:lingers-)?([0-9]{1,9})$/.exec(text);
  return match === null ? undefined : Number(match[1]);
}
