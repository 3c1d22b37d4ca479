import type { Behaviours } from "../../../src/simulator/behaviours.ts";
import { behavioursOf, getProfile, type Vocabulary } from "../../../src/simulator/profile.ts";
import type { Setting } from "./settings.ts";

/** What a scenario's outcome may depend on: a router's behaviours and its vocabulary. */
export interface RouterKind extends Behaviours, Vocabulary {
  readonly btrfs: boolean;
}

/** A test of the driver that runs on routers of every kind. */
export interface Scenario {
  /** A name of a few words, shown in the matrix. */
  readonly name: string;
  /** Runs the scenario, and asserts the outcome that it has on most routers. */
  readonly run: (setting: Setting) => Promise<void>;
  /** The kinds of router with another outcome; the first match is used. Each of them asserts something too. */
  readonly otherwise?: readonly Otherwise[];
}

/** Another outcome of a scenario. */
export interface Otherwise {
  readonly when: (router: RouterKind) => boolean;
  /** The reason, and the outcome there. */
  readonly because: string;
  readonly run: (setting: Setting) => Promise<void>;
}

/** The kind of router that a setting describes. */
export function kindOf({ profile, behaviours }: Setting): RouterKind {
  const { vocabulary, poolFilesystem } = getProfile(profile);
  const btrfs = poolFilesystem === "btrfs";
  return { ...behavioursOf(getProfile(profile), behaviours), ...vocabulary, btrfs };
}

/** The outcome to expect on this router; undefined is the usual one. */
export function outcomeOn(scenario: Scenario, setting: Setting): Otherwise | undefined {
  const kind = kindOf(setting);
  return scenario.otherwise?.find(({ when }) => when(kind));
}
