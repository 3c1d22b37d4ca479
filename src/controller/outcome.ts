import { VolumeError } from "../volume/errors.ts";
import type { MutationOutcome, StoredVolume, VolumeView } from "../volume/ports.ts";

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
  if (after !== undefined && after.comment !== before) {
    throw new VolumeError(
      "busy",
      `Cannot ${verb} the volume as its record was changed at the same time: volume=${id}; try again`,
    );
  }
  const reason = refusal === undefined
    ? "the router did not do it"
    : `the router answered ${JSON.stringify(refusal.slice(0, 200))}`;
  throw new VolumeError("unavailable", `Cannot ${verb} the volume as ${reason}: volume=${id}`);
}

/**
 * The volume as it was read after a change that must have led to `wanted`; anything else fails by `failMutation()`.
 *
 * @param written the comment that the change wrote: finding it is no sign of somebody else
 */
export function assertChanged(
  verb: string,
  before: StoredVolume,
  outcome: MutationOutcome<VolumeView>,
  wanted: (after: StoredVolume) => boolean,
  written = before.comment,
): StoredVolume {
  const after = outcome.after.volume;
  if (after !== undefined && wanted(after)) return after;
  const expected = after?.comment === written ? written : before.comment;
  return failMutation(verb, before.id, expected, after, outcome.refusal);
}
