import { VolumeError } from "../volume/errors.ts";
import type { OwnedVolume } from "../volume/ownership.ts";
import type {
  CallContext,
  MutationOutcome,
  StoredVolume,
  VolumeChange,
  VolumeView,
} from "../volume/ports.ts";
import { formatComment, rewritten } from "../volume/record.ts";
import type { ControllerWorld } from "./world.ts";

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
 * Changes a volume if its comment is still the same, and returns it as it was read afterwards. One command.
 *
 * @throws {VolumeError} busy or unavailable, by `failMutation()`, when what was read is not `wanted`
 */
export async function changeVolume(
  world: ControllerWorld,
  verb: string,
  before: StoredVolume,
  change: VolumeChange,
  wanted: (after: StoredVolume) => boolean,
  context: CallContext,
): Promise<StoredVolume> {
  const outcome = await remembered(
    world,
    before,
    () => world.store.change(before.id, before.comment, change, context),
  );
  const after = outcome.after.volume;
  if (after !== undefined && wanted(after)) return after;
  // Finding the comment that was written is no sign of somebody else.
  const written = change.comment ?? before.comment;
  const expected = after?.comment === written ? written : before.comment;
  return failMutation(verb, before.id, expected, after, outcome.refusal);
}

/** Sends a mutation that expects the comment of `before`; one whose end stays unknown is remembered. */
export async function remembered(
  world: ControllerWorld,
  before: StoredVolume,
  send: () => Promise<MutationOutcome<VolumeView>>,
): Promise<MutationOutcome<VolumeView>> {
  const { id, comment } = before;
  try {
    const outcome = await send();
    const unchanged = outcome.refusal === undefined && outcome.after.volume?.comment === comment;
    if (unchanged) world.unsettled.remember(id, comment);
    return outcome;
  } catch (error) {
    world.unsettled.remember(id, comment);
    throw error;
  }
}

/**
 * Rewrites the record of a volume if a change that was sent earlier may still come, so that it finds another comment
 * than it expects. No command where none may, else one.
 *
 * @throws {VolumeError} busy when that change came first
 */
export async function outdateUnsettled(
  world: ControllerWorld,
  verb: string,
  volume: OwnedVolume,
  context: CallContext,
): Promise<void> {
  const { stored } = volume;
  if (!world.unsettled.mayStillCome(stored.id, stored.comment)) return;
  const comment = formatComment({ ...volume.comment, record: rewritten(volume.record) });
  const wanted = (after: StoredVolume) => after.comment === comment && after.exported === stored.exported;
  await changeVolume(world, verb, stored, { comment }, wanted, context);
}
