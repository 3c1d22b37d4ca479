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
    poolFilesystem,
    answers: parseSettings(answerReaders, known(asObject(value.answers), passOver)),
  };
}

/** Returns only the answers to this version's questions; nothing in it depends on the others. */
function known(
  answers: Readonly<Record<string, unknown>>,
  passOver: (question: string) => void,
): Readonly<Record<string, unknown>> {
  const isKnown = (name: string) => Object.hasOwn(answerReaders, name);
  for (const name of Object.keys(answers).filter((name) => !isKnown(name))) passOver(name);
  return Object.fromEntries(Object.entries(answers).filter(([name]) => isKnown(name)));
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
