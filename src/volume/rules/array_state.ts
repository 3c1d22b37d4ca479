import type { Pool } from "../model/inventory.ts";

/** States in which an array does all that it should; any other is reported as it stands. */
const soundStates: ReadonlySet<string> = new Set([
  "",
  "clean",
  "active",
  "active-idle",
  "read-auto",
  "write-pending",
]);

/** What the state of a RAID array says. */
export interface ArrayState {
  readonly sound: boolean;
  /** What it does beside serving, such as `sync:repair, resync = 3%`; "" for nothing. */
  readonly activity: string;
}

/**
 * Reads the state of an array, which is a list: the first part judges, and an array that checks or copies beside that is
 * as sound as before.
 *
 * @param state as the router words it, such as `clean, sync:repair, resync = 3%`; "" where it says nothing
 */
export function parseArrayState(state: string): ArrayState {
  const [first = "", ...others] = state.split(/[,;]/).map((part) => part.trim());
  return { sound: soundStates.has(first), activity: others.filter((part) => part !== "").join(", ") };
}

/** Why a pool has lost redundancy, in words for people; undefined when it has not. */
export function describeUnsoundPool({ mountPoint, state, unsoundArrays = [] }: Pool): string | undefined {
  const parts = [
    ...parseArrayState(state).sound ? [] : [`state=${state}`],
    ...unsoundArrays.map((array) => `array=${array.slot} state=${array.state}`),
  ];
  return parts.length === 0 ? undefined : `pool=${mountPoint} ${parts.join(" ")}`;
}
