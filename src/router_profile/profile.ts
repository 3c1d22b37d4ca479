import { answerReaders, parseSettings, type RouterBehaviours } from "./answers.ts";

/** One router: what it is, and its answers to the questions. */
export interface RouterProfile {
  readonly name: string;
  /** As `/system resource print` prints it. */
  readonly version: string;
  /** File system of the pools. */
  readonly poolFilesystem: "btrfs" | "xfs";
  /** The known answers; the others were not asked, or could not be answered. */
  readonly answers: Partial<RouterBehaviours>;
}

/** An object whose content was not checked yet. */
type JsonObject = Readonly<Record<string, unknown>>;

/** The format name in a profile file. */
const format = "rds-csi-router-profile/1";

/**
 * Formats a profile as JSON, for a bug report, for `--router-profile` and for the simulator.
 *
 * @param unanswered questions without an answer, each with the reason
 */
export function formatProfile(
  profile: RouterProfile,
  unanswered: Readonly<Record<string, string>> = {},
): string {
  const { name, version, poolFilesystem } = profile;
  // A simulated router has more properties than the questions to a router.
  const asked = Object.entries(profile.answers).filter(([question]) =>
    Object.hasOwn(answerReaders, question)
  );
  const answers = Object.fromEntries(asked);
  return JSON.stringify({ format, name, version, poolFilesystem, answers, unanswered }, null, 2) + "\n";
}

/**
 * Parses a profile file. It ignores answers to questions that only an earlier or a later version asks, so that either
 * version accepts the file.
 *
 * @param passOver called with each such question
 * @throws {RangeError} when it is no profile, or has an invalid answer
 */
export function parseProfile(text: string, passOver: (question: string) => void = () => {}): RouterProfile {
  const value = parseObject(text, "router profile");
  if (value.format !== format) {
    throw new RangeError(`It is no router profile: its format is not ${format}.`);
  }
  const { name, version, poolFilesystem, answers } = value;
  if (typeof name !== "string" || typeof version !== "string") {
    throw new RangeError("The router profile has no name or no version.");
  }
  if (poolFilesystem !== "btrfs" && poolFilesystem !== "xfs") {
    throw new RangeError("The router profile's poolFilesystem is neither btrfs nor xfs.");
  }
  if (!isObject(answers)) throw new RangeError("The router profile's answers are no object.");
  return { name, version, poolFilesystem, answers: parseSettings(answerReaders, known(answers, passOver)) };
}

/** Returns only the answers to this version's questions; nothing in it depends on the others. */
function known(
  answers: JsonObject,
  passOver: (question: string) => void,
): JsonObject {
  const isKnown = (name: string) => Object.hasOwn(answerReaders, name);
  for (const name of Object.keys(answers).filter((name) => !isKnown(name))) passOver(name);
  return Object.fromEntries(Object.entries(answers).filter(([name]) => isKnown(name)));
}

/**
 * Parses a JSON object.
 *
 * @param what names it in errors
 * @throws {RangeError} when it is none
 */
export function parseObject(text: string, what: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RangeError(`It is no ${what}: it is not JSON.`, { cause });
  }
  if (isObject(value)) return value;
  throw new RangeError(`It is no ${what}: it is no object.`);
}

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
