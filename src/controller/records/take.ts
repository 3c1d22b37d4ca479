import { filePrefixOf } from "../../volume/model/layout.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { type OwnedVolume, rewritten } from "../../volume/model/record.ts";
import { ifSent } from "../../volume/ports/store.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import { commentWith, fits, isCut, keepWithdrawal, putBack, restoreComment, writeRecord } from "../change.ts";
import type { ControllerCall } from "../deps.ts";
import { commit } from "./commit.ts";
import { premisesOf } from "./confirmations.ts";
import type { Step } from "./steps.ts";

/** Takes a step of a volume as it was read, and returns it as read back. One command. */
export async function taken(call: ControllerCall, verb: string, step: Step): Promise<OwnedVolume> {
  const { volume, change, isDone } = step;
  const { id, comment } = volume.stored;
  // Else a change that the router runs late would find the comment that it expects, and undo what is answered here: also when
  // a later step writes the comment of before again, as a node that leaves after it has joined.
  const record = call.memory.inDoubt.mayStillApply(id, comment) ? rewritten(step.record) : step.record;
  try {
    return counted(call, step, await writeRecord(call, verb, volume, record, isDone, change));
  } catch (error) {
    // Whoever has lost the lead changes nothing any more.
    if (!call.context.signal.aborted) await step.mend?.();
    throw error;
  }
}

/**
 * Takes a step of a volume as it is remembered, if the router confirms what it claims. One command, or none; a second one where
 * an export came on and what was read back is not wanted: nobody was told of it, so it goes off again under the record of before.
 *
 * Undefined proves nothing: the router has another record or image, or the volume is gone. Whoever reads then finds out.
 *
 * @throws {VolumeError} precondition when the router keeps too little of a comment; unavailable when what came of the command
 * cannot be read
 */
export async function takenUnread(
  call: ControllerCall,
  verb: string,
  step: Step,
): Promise<OwnedVolume | undefined> {
  const { kind, volume, record, change, isDone } = step;
  const { stored: disk } = volume;
  const { cluster, settleMs } = call.settings;
  const filePrefix = filePrefixOf(disk.id, cluster);
  const premises = premisesOf(kind, { disk, filePrefix, settleMs });
  if (premises === undefined || !fits(volume, record)) return undefined;
  const comment = commentWith(volume, record);
  const write = { id: disk.id, set: { ...change, comment }, filePrefix };
  const after = ifSent(await commit(call, disk, write, premises))?.after.volume;
  if (after === undefined) return undefined;
  if (isCutByRouter(after, disk, comment)) return await restoreComment(call, disk, after);
  if (after.comment !== comment) return undefined;
  // By a person's hand another disk may have come into the slot meanwhile.
  if (after.imagePath !== disk.imagePath || !isDone(after)) {
    if (isExportedBy(change, after)) await putBack(call, disk, after);
    return undefined;
  }
  call.memory.wrote(after, disk.comment);
  if (change.export === undefined) keepWithdrawal(call, volume, record, after);
  return counted(call, step, getOwned(after, cluster, verb));
}

/** A router that kept the old comment keeps no less of a new one: what is shorter was cut by a person. */
function isCutByRouter(after: StoredVolume, before: StoredVolume, written: string): boolean {
  return isCut(after.comment, written) && after.comment.length >= before.comment.length;
}

function isExportedBy({ export: on }: Step["change"], after: StoredVolume): boolean {
  return on !== undefined && on !== false && after.exported && after.exportNqn === on.nqn;
}

/** Counts the grace of a withdrawal from its read-back. */
function counted(call: ControllerCall, { kind }: Step, after: OwnedVolume): OwnedVolume {
  if (kind === "withdraw") call.memory.off.confirm(after.stored.id, after.stored.comment);
  return after;
}
