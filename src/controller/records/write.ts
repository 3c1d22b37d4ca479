import { filePrefixOf } from "../../volume/model/image_names.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { parseComment } from "../../volume/model/record.ts";
import type { VolumeChange } from "../../volume/ports/store.ts";
import { sent } from "../../volume/ports/not_sent.ts";
import type { ControllerCall } from "../deps.ts";
import { changedMeanwhile, failMutation } from "../not_done.ts";
import { cutComment, isCut } from "./comment.ts";
import { commit } from "./commit.ts";

/**
 * How long a session of the router may take from finding a disk to changing it, in milliseconds. Both are one statement, which
 * takes less than a tenth of a second; nothing says that it cannot be held up.
 */
const findToChangeMs = 2_000;

/**
 * Changes a volume if its comment is still the same, and returns it as it was read afterwards. One command; a second one, two
 * seconds later, for the first change after another controller has led.
 *
 * @throws {VolumeError} busy or unavailable, by `failMutation()`, when what was read is not `wanted`; busy when it is on another
 * image
 */
export async function changeVolume(
  call: ControllerCall,
  verb: string,
  before: StoredVolume,
  change: VolumeChange,
  wanted: (after: StoredVolume) => boolean,
): Promise<StoredVolume> {
  const outcome = sent(await commit(call, before, { id: before.id, set: change }));
  const after = outcome.after.volume;
  const written = change.comment ?? before.comment;
  // Also where a person has put the disk on another file meanwhile: a note that was cut would be lost.
  if (after !== undefined && isCut(after.comment, written)) {
    await restoreComment(call, before, after);
  }
  // By a person's hand another disk may be in the slot, with the same comment.
  if (after !== undefined && after.imagePath !== before.imagePath) throw changedMeanwhile(verb, before.id);
  if (after !== undefined && wanted(after)) {
    const kept = await confirmKept(call, verb, before, after, wanted);
    const isRewritten = change.comment !== undefined && change.comment !== before.comment;
    if (!isRewritten) call.memory.known.remember(kept, before.comment);
    else call.memory.wrote(kept, before.comment);
    return kept;
  }
  // Finding the comment that was written is no sign of somebody else.
  const expected = after?.comment === written ? written : before.comment;
  return failMutation(verb, before.id, expected, after, outcome.refusal);
}

/**
 * Reads a volume again after a change, where another controller led before: its last command may have found the disk by the
 * comment that was there before, and change it only now, whatever the comment is.
 *
 * A disk that had no record yet was changed by none.
 *
 * @throws {VolumeError} busy when it was changed, unavailable when it is gone
 */
async function confirmKept(
  call: ControllerCall,
  verb: string,
  before: StoredVolume,
  after: StoredVolume,
  wanted: (after: StoredVolume) => boolean,
): Promise<StoredVolume> {
  const { id, comment } = before;
  if (!call.memory.inDoubt.othersMayStillApply(id, comment) || parseComment(comment).state === "none") {
    return after;
  }
  await call.clock.sleep(findToChangeMs, call.context.signal);
  const { volume } = await call.store.view(id, filePrefixOf(id, call.settings.cluster), call.context);
  if (volume?.comment === after.comment && wanted(volume)) return volume;
  return failMutation(verb, id, after.comment, volume, undefined);
}

/**
 * A record that was cut tells nobody anything: the one before is put back, with the export off as before or because
 * nobody was told of it.
 */
export async function restoreComment(
  call: ControllerCall,
  before: StoredVolume,
  cut: StoredVolume,
): Promise<never> {
  await putBack(call, before, cut);
  throw cutComment("change", before.id, cut.comment.length);
}

/** Gives a volume the comment of before, with the export off if it was. */
export async function putBack(
  call: ControllerCall,
  before: StoredVolume,
  after: StoredVolume,
): Promise<void> {
  const change = { comment: before.comment, ...(before.exported ? {} : { export: false as const }) };
  sent(await commit(call, after, { id: before.id, set: change }));
}
