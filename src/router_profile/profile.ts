import { answerReaders, parseSettings, printableBehaviours, type RouterBehaviours } from "./answers.ts";

/** Words that not every router's grammar has. */
export interface Vocabulary {
  /** The `rose-storage` package is there: `nvme-tcp-*` and file disks are. */
  readonly rose: boolean;
  /** `nvme-tcp-server-nqn` exists (7.21); before it the subsystem is named after the slot. */
  readonly nqn: boolean;
  /** `/file copy` exists (7.23). */
  readonly fileCopy: boolean;
  /** `/disk/btrfs/subvolume` exists (7.18). */
  readonly subvolumes: boolean;
}

/** One kind of router: what its grammar knows, how it prints, and its answers to the open questions. */
export interface RouterProfile {
  readonly name: string;
  /** As `/system resource print` gives it. */
  readonly version: string;
  readonly vocabulary: Vocabulary;
  /** File system of the pools. */
  readonly poolFilesystem: "btrfs" | "xfs";
  /** What is known of the answers; the rest was not asked, or could not be answered. */
  readonly answers: Partial<RouterBehaviours>;
}

/** What a profile file says of itself. */
const format = "rds-csi-router-profile/1";

/**
 * Writes a profile as JSON, for a bug report, for `--router-profile` and for the simulator.
 *
 * @param unanswered questions that got no answer, each with the reason
 */
export function formatProfile(
  profile: RouterProfile,
  unanswered: Readonly<Record<string, string>> = {},
): string {
  const { answers, ...rest } = profile;
  // A simulated router knows more about itself than anybody asks of a router.
  const asked = Object.entries(printableBehaviours(answers)).filter(([name]) =>
    Object.hasOwn(answerReaders, name)
  );
  return JSON.stringify({ format, ...rest, answers: Object.fromEntries(asked), unanswered }, null, 2) + "\n";
}

/**
 * Reads a profile file. Answers to questions that only an earlier or a later version asks are passed over, so that either
 * version starts with it.
 *
 * @param passOver told each such question
 * @throws {RangeError} when it is none, or gives an answer that does not exist
 */
export function parseProfile(text: string, passOver: (question: string) => void = () => {}): RouterProfile {
  const value = parseObject(text);
  if (value.format !== format) {
    throw new RangeError(`It is no router profile: its format is not ${format}.`);
  }
  const { name, version, poolFilesystem } = value;
  if (typeof name !== "string" || typeof version !== "string") {
    throw new RangeError("The router profile has no name or no version.");
  }
  if (poolFilesystem !== "btrfs" && poolFilesystem !== "xfs") {
    throw new RangeError("The router profile's poolFilesystem is neither btrfs nor xfs.");
  }
  return {
    name,
    version,
    vocabulary: parseVocabulary(value.vocabulary),
    poolFilesystem,
    answers: parseSettings(answerReaders, known(asObject(value.answers), passOver)),
  };
}

/** Only what this version asks: nothing in it depends on the rest. */
function known(
  answers: Readonly<Record<string, unknown>>,
  passOver: (question: string) => void,
): Readonly<Record<string, unknown>> {
  const isKnown = (name: string) => Object.hasOwn(answerReaders, name);
  for (const name of Object.keys(answers).filter((name) => !isKnown(name))) passOver(name);
  return Object.fromEntries(Object.entries(answers).filter(([name]) => isKnown(name)));
}

function parseVocabulary(value: unknown): Vocabulary {
  const fields = asObject(value);
  const word = (name: keyof Vocabulary) => {
    const known = fields[name];
    if (typeof known === "boolean") return known;
    throw new RangeError(`The router profile does not say whether the router knows ${name}.`);
  };
  return {
    rose: word("rose"),
    nqn: word("nqn"),
    fileCopy: word("fileCopy"),
    subvolumes: word("subvolumes"),
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RangeError("It is no router profile: it is not JSON.", { cause });
  }
  return asObject(value);
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw new RangeError("A part of the router profile is no object.");
}
