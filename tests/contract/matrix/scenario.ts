import type { Vocabulary } from "../../../src/router_profile/profile.ts";
import type { Behaviours } from "../../../src/simulator/behaviours.ts";
import { behavioursOf, getProfile } from "../../../src/simulator/profile.ts";
import type { Setting } from "./settings.ts";

/** What a scenario's outcome may depend on: the behaviours of a router, and the words that it knows. */
export interface RouterKind extends Behaviours, Vocabulary {
  readonly btrfs: boolean;
}

/** Something that the driver is put through, on a router of every kind. */
export interface Scenario {
  /** In a word or two, as the matrix shows it. */
  readonly name: string;
  /** Tries it, and asserts what comes of it on most routers. */
  readonly run: (setting: Setting) => Promise<void>;
  /** Where something else comes of it; the first that fits counts. Never "nothing is asserted". */
  readonly otherwise?: readonly Otherwise[];
}

/** Another outcome of a scenario. */
export interface Otherwise {
  readonly when: (router: RouterKind) => boolean;
  /** What is so there, and what comes of it. */
  readonly because: string;
  readonly run: (setting: Setting) => Promise<void>;
}

/** What a router of that setting is like. */
export function kindOf({ profile, behaviours }: Setting): RouterKind {
  const { vocabulary, poolFilesystem } = getProfile(profile);
  const btrfs = poolFilesystem === "btrfs";
  return { ...behavioursOf(getProfile(profile), behaviours), ...vocabulary, btrfs };
}

/** The outcome that counts on such a router; undefined is the usual one. */
export function outcomeOn(scenario: Scenario, setting: Setting): Otherwise | undefined {
  const kind = kindOf(setting);
  return scenario.otherwise?.find(({ when }) => when(kind));
}
