import type { Stash } from "../../volume/model/staging_state.ts";

/** Whether every use of the device here is a read-only one: a read-only bind of a device does not stop writes. */
export function wantsReadOnlyDevice(stash: Stash): boolean {
  if (stash.readOnly) return true;
  return stash.kind === "block" && stash.published.length > 0 &&
    stash.published.every((target) => target.readOnly);
}
