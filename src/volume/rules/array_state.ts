import type { Pool } from "../model/inventory.ts";

/** States in which an array works fully, and what stands for none; any other is reported unchanged. */
const soundStates: ReadonlySet<string> = new Set([
  "",
  "none",
  "-",
  "clean",
  "active",
  "active-idle",
  "read-auto",
  "write-pending",
]);

/** The parsed state of a RAID array. */
export interface ArrayState {
  readonly sound: boolean;
  /** What it does besides serving, such as `sync:repair, resync = 3%`; "" for nothing. */
  readonly activity: string;
}

/**
 * Parses the state of an array, which is a list. The first part decides: an array that also checks or copies is as
 * sound as before.
 *
 * @param state the router's text, such as `clean, sync:repair, resync = 3%`; "" where it reports none
 */
export function parseArrayState(state: string): ArrayState {
  const [first = "", ...others] = state.split(/[,;]/).map((part) => part.trim());
  return { sound: soundStates.has(first), activity: others.filter((part) => part !== "").join(", ") };
}

/** Why a pool has lost redundancy, for people; undefined when it has not. */
export function describeUnsoundPool({ mountPoint, state, unsoundArrays = [] }: Pool): string | undefined {
  const parts = [
    ...parseArrayState(state).sound ? [] : [`state=${state}`],
    ...unsoundArrays.map((array) => `array=${array.slot} state=${array.state}`),
  ];
  return parts.length === 0 ? undefined : `pool=${mountPoint} ${parts.join(" ")}`;
}
