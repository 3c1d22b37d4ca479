import { defaultKnobs, type Knobs } from "./knobs.ts";

/** Words that not every router's grammar has. */
export interface Vocabulary {
  /** The `rose-storage` package is there: `nvme-tcp-*` and file disks are. */
  readonly rose: boolean;
  /** `nvme-tcp-server-nqn` exists (7.21); before it the subsystem is named after the slot. */
  readonly nqn: boolean;
  /** `/file copy` exists (7.23). */
  readonly fileCopy: boolean;
}

/** One kind of router: what its grammar knows, how it prints, and its answers to the open questions. */
export interface Profile {
  readonly name: string;
  /** As `/system resource print` gives it. */
  readonly version: string;
  readonly vocabulary: Vocabulary;
  /** Whether a legend names the flags that occur, or all there are. */
  readonly legend: "present" | "all";
  /** File system of the pools. */
  readonly poolFilesystem: "btrfs" | "xfs";
  /** Where it differs from {@linkcode defaultKnobs}. */
  readonly knobs: Partial<Knobs>;
}

const everything: Vocabulary = { rose: true, nqn: true, fileCopy: true };

const current: Profile = {
  name: "ros-7.24",
  version: "7.24 (stable)",
  vocabulary: everything,
  legend: "present",
  poolFilesystem: "btrfs",
  knobs: { maxSlot: 32 },
};

/** Every profile there is; the first is the default. */
export const profiles: readonly Profile[] = [
  current,
  {
    ...current,
    name: "ros-7.21",
    version: "7.21 (stable)",
    vocabulary: { ...everything, fileCopy: false },
    legend: "all",
    knobs: {},
  },
  {
    ...current,
    name: "ros-7.20",
    version: "7.20.8 (long-term)",
    vocabulary: { ...everything, nqn: false, fileCopy: false },
    legend: "all",
    knobs: {},
  },
  { ...current, name: "no-rose", vocabulary: { ...everything, rose: false } },
  { ...current, name: "xfs-pool", poolFilesystem: "xfs" },
  {
    ...current,
    name: "hostile",
    knobs: { ...current.knobs, errorText: "random", numbers: "text", noise: true },
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

/** The knobs of a profile, with single ones set on top. */
export function knobsOf(profile: Profile, own: Partial<Knobs> = {}): Knobs {
  return { ...defaultKnobs, ...profile.knobs, ...own };
}
