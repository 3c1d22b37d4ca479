import { parseProfile, type RouterProfile } from "../router_profile/profile.ts";
import { type Behaviours, defaultBehaviours } from "./behaviours.ts";
import { isSince } from "./menu/versions.ts";

/** Features that not every router's commands have. */
export interface Vocabulary {
  /** Whether the `rose-storage` package is installed, which provides `nvme-tcp-*` and file disks. */
  readonly rose: boolean;
  /** Whether `/file copy` exists (7.23). */
  readonly fileCopy: boolean;
}

/** One kind of router to simulate. */
export type Profile = Omit<RouterProfile, "answers"> & {
  readonly vocabulary: Vocabulary;
  readonly answers: Partial<Behaviours>;
};

const everything: Vocabulary = { rose: true, fileCopy: true };

const current: Profile = {
  name: "ros-7.24",
  version: "7.24.4 (stable)",
  vocabulary: everything,
  poolFilesystem: "btrfs",
  answers: { maxSlot: 32 },
};

/** All profiles; the first is the default. */
export const profiles: readonly Profile[] = [
  current,
  {
    ...current,
    name: "ros-7.21",
    version: "7.21 (stable)",
    vocabulary: { ...everything, fileCopy: false },
    answers: {},
  },
  { ...current, name: "no-rose", vocabulary: { ...everything, rose: false } },
  {
    ...current,
    name: "xfs-pool",
    poolFilesystem: "xfs",
    answers: { ...current.answers, allocation: "full" },
  },
];

/**
 * Finds a profile by its name.
 *
 * @throws {RangeError} when there is none.
 */
export function getProfile(name: string): Profile {
  const profile = profiles.find((candidate) => candidate.name === name);
  if (profile === undefined) {
    throw new RangeError(`There is no profile ${name}; there are ${profiles.map((p) => p.name).join(", ")}.`);
  }
  return profile;
}

/** The behaviours of a profile, overridden by `own`. */
export function behavioursOf(profile: Profile, own: Partial<Behaviours> = {}): Behaviours {
  return { ...defaultBehaviours, ...profile.answers, ...own };
}

/**
 * Parses a file with a probe's result: a router with those answers, and the features of its version.
 *
 * @throws {RangeError} when it is no profile
 */
export function parsePlayed(text: string): Profile {
  const { answers: { limits: _, ...answers }, ...router } = parseProfile(text);
  return { ...router, vocabulary: { rose: true, fileCopy: isSince(router.version, 23) }, answers };
}
