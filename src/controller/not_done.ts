import { VolumeError } from "../volume/errors.ts";
import type { StoredVolume } from "../volume/model/inventory.ts";

/** What a router said instead of doing it, to be added to an error's text; "" when it said nothing. */
export function answered(refusal: string | undefined): string {
  return refusal === undefined ? "" : `; the router answered ${JSON.stringify(refusal.slice(0, 200))}`;
}

/** Why a router has not done something, in words. @param hint what else may be the reason, where it said nothing */
export function whyNotDone(refusal: string | undefined, hint = ""): string {
  return refusal === undefined
    ? `the router did not do it${hint}`
    : `the router answered ${JSON.stringify(refusal.slice(0, 200))}`;
}

/**
 * Concludes why a mutation did not lead to what was wanted, from what was read afterwards.
 *
 * @param before the comment that the change was conditional on
 * @throws {VolumeError} busy when somebody else changed the record first, else unavailable
 */
export function failMutation(
  verb: string,
  id: string,
  before: string,
  after: StoredVolume | undefined,
  refusal: string | undefined,
): never {
  if (after !== undefined && after.comment !== before) throw changedMeanwhile(verb, id);
  throw new VolumeError(
    "unavailable",
    `Cannot ${verb} the volume because ${whyNotDone(refusal)}: volume=${id}`,
  );
}

/** The error for a record that somebody else changes at the same time. */
export function changedMeanwhile(verb: string, id: string): VolumeError {
  return new VolumeError(
    "busy",
    `Cannot ${verb} the volume because its record was changed at the same time: volume=${id}; try again`,
  );
}
