import { VolumeError } from "../../volume/errors.ts";
import type { LockKey } from "./call.ts";

/** Lets go of what was taken. A second call does nothing. */
export type Release = () => void;

/**
 * Who changes which volume right now: one changing call for a key, nobody waits.
 *
 * Looking and taking is one synchronous step. An `await` between the two would let two calls both find a key free.
 */
export class VolumeLocks {
  readonly #holders = new Map<string, string>();

  /**
   * Takes all keys or none; `holder` names the call in the refusals of others.
   *
   * @throws {VolumeError} busy when another call holds one of the keys
   */
  take(keys: readonly string[], holder: string): Release {
    for (const key of keys) {
      const other = this.#holders.get(key);
      if (other === undefined) continue;
      throw new VolumeError("busy", `Cannot change ${key} as another call is changing it: held by ${other}`);
    }
    const taken = new Set(keys);
    for (const key of taken) this.#holders.set(key, holder);
    return () => {
      for (const key of taken) this.#holders.delete(key);
      taken.clear();
    };
  }

  /** As {@linkcode VolumeLocks.take}, but undefined when another call holds one of the keys. */
  tryTake(keys: readonly string[], holder: string): Release | undefined {
    return keys.some((key) => this.#holders.has(key)) ? undefined : this.take(keys, holder);
  }

  /** How many keys are held. */
  get size(): number {
    return this.#holders.size;
  }
}

/** The keys of a request as a list; what is empty locks nothing. */
export function lockKeys(key: LockKey): readonly string[] {
  const keys = key === undefined ? [] : typeof key === "string" ? [key] : key;
  return keys.filter((each) => each !== "");
}
