// All kinds of router on which the contract is tested: each profile, each value of each behaviour alone, and mixtures.
import { type Behaviours, defaultBehaviours } from "../../../src/simulator/behaviours.ts";
import { behavioursOf, profiles } from "../../../src/simulator/profile.ts";
import type { Random } from "../../../src/volume/ports/system.ts";

/** One kind of router. */
export interface Setting {
  /** The name shown in the matrix. */
  readonly name: string;
  readonly profile: string;
  readonly behaviours: Partial<Behaviours>;
}

/**
 * The values of each behaviour that get a row. For limits, these are the values around which the driver acts
 * differently.
 */
export const behaviourValues: { readonly [Name in keyof Behaviours]: readonly Behaviours[Name][] } = {
  maxSlot: [31, 32, Infinity],
  maxComment: [64, 128, 255],
  maxNqn: [64, 223],
  maxPut: [600, 4096, Infinity],
  maxSessions: [1, 20],
  maxCommand: [512, 1024, Infinity],
  interleave: [false, true],
  emptyFind: ["silent", "item-id-error"],
  duplicateSlot: ["refused", "renamed"],
  output: ["plain", "hostile"],
  grow: ["live", "after-toggle", "never"],
  identity: ["kept", "new-per-export"],
  bootIdentity: ["kept", "new"],
  sideEffects: ["harmless", "ends-sessions"],
  unexport: [0, 300, "refuses-commands"],
  disksLate: [0, 300],
  allocation: ["sparse", "full"],
  adopt: ["kept", "refused"],
  otherSize: ["refused", "kept", "resized"],
  directoryRemoval: ["recursive", "must-be-empty"],
  copyReturns: ["when-done", "at-once"],
  subvolumeNames: ["nested", "flat"],
  subvolumeParent: ["free", "held"],
  freeStep: [1, 1 << 20],
  hardwareNames: ["all", "none"],
};

/** Values with which a router is useless; in a mixture they would hide all other behaviours. */
const hopeless: { readonly [Name in keyof Behaviours]?: readonly Behaviours[Name][] } = {
  maxSlot: [31],
  maxComment: [64, 128],
  maxNqn: [64],
  maxPut: [600],
  maxCommand: [512],
  sideEffects: ["ends-sessions"],
};

/** Each profile, and each value of each behaviour that is not the default, on the first profile. */
export function singleSettings(): Setting[] {
  const defaults = profiles[0]!;
  const defaultBehaviours = behavioursOf(defaults);
  const turned = behaviourNames().flatMap((name) =>
    behaviourValues[name].filter((value) => value !== defaultBehaviours[name]).map((value) => ({
      name: `${name}=${value}`,
      profile: defaults.name,
      behaviours: { [name]: value },
    }))
  );
  return [...profiles.map(({ name }) => ({ name, profile: name, behaviours: {} })), ...turned];
}

/** A router with a random value for every behaviour. */
export function randomSetting(name: string, random: Random): Setting {
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random.fraction() * items.length)]!;
  const fit = profiles.filter(({ vocabulary }) => vocabulary.rose);
  const behaviours = behaviourNames().map((name) => {
    const values: readonly Behaviours[keyof Behaviours][] = behaviourValues[name];
    const useless: readonly Behaviours[keyof Behaviours][] = hopeless[name] ?? [];
    return [name, pick(values.filter((value) => !useless.includes(value)))];
  });
  return { name, profile: pick(fit).name, behaviours: Object.fromEntries(behaviours) };
}

/** The behaviours that differ from the default, so that a person can repeat a failure. */
export function describeSetting({ profile, behaviours }: Setting): string {
  const turned = Object.entries(behaviours).filter(([name, value]) =>
    value !== defaultBehaviours[name as keyof Behaviours]
  );
  return [`--profile ${profile}`, ...turned.map(([name, value]) => `--behaviour ${name}=${value}`)].join(" ");
}

function behaviourNames(): (keyof Behaviours)[] {
  return Object.keys(behaviourValues) as (keyof Behaviours)[];
}
