import { VolumeError } from "../../volume/errors.ts";
import { filePrefixOf } from "../../volume/model/image_names.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { type OwnedVolume, rewritten, type VolumeRecord } from "../../volume/model/record.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import { ifSent } from "../../volume/ports/not_sent.ts";
import type { ControllerCall } from "../deps.ts";
import { commentWith, fittingComment, isCut } from "./comment.ts";
import { commit } from "./commit.ts";
import { premisesOf } from "./premises.ts";
import { isExportedAs, type Step } from "./steps.ts";
import { changeVolume, putBack, restoreComment } from "./write.ts";

/**
 * Takes a step of a volume as it was read, and returns it as read back. One command.
 *
 * @throws {VolumeError} busy or unavailable, as {@linkcode changeVolume} does; precondition when the record does not fit
 */
export async function taken(call: ControllerCall, verb: string, step: Step): Promise<OwnedVolume> {
  const { volume: { stored } } = step;
  // Else a change that the router runs late would find the comment that it expects, and undo what is answered here: also when
  // a later step writes the comment of before again, as a node that leaves after it has joined.
  const isOutdating = call.memory.inDoubt.mayStillApply(stored.id, stored.comment);
  try {
    const after = await recorded(call, verb, step, isOutdating ? rewritten(step.record) : step.record);
    return counted(call, step, after);
  } catch (error) {
    // Whoever has lost the lead changes nothing any more: that ends a call as unavailable, and after it nothing is sent.
    if (!VolumeError.is(call.context.signal.reason, "unavailable")) await step.mend?.();
    throw error;
  }
}

/** Writes the record of a volume, with whatever else changes. */
async function recorded(
  call: ControllerCall,
  verb: string,
  { volume, change, isDone }: Step,
  record: VolumeRecord,
): Promise<OwnedVolume> {
  const comment = commentWith(volume, record);
  const rewrite = comment === volume.stored.comment ? {} : { comment };
  const isWritten = (after: StoredVolume) => after.comment === comment && isDone(after);
  const after = await changeVolume(call, verb, volume.stored, { ...change, ...rewrite }, isWritten);
  if (change.export === undefined) keepWithdrawal(call, volume, record, after);
  return getOwned(after, call.settings.cluster, verb);
}

/**
 * Rewrites the record of a volume if a change that was sent earlier may still come, so that it finds another comment
 * than it expects. No command where none may, else one.
 *
 * @throws {VolumeError} busy when that change came first
 */
export async function outdateInDoubt(call: ControllerCall, verb: string, volume: OwnedVolume): Promise<void> {
  const { stored, record } = volume;
  if (!call.memory.inDoubt.mayStillApply(stored.id, stored.comment)) return;
  await taken(call, verb, { kind: "rewrite", volume, record, change: {}, isDone: isExportedAs(stored) });
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
  const comment = fittingComment(volume, record);
  if (premises === undefined || comment === undefined) return undefined;
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

/** Keeps the age of a withdrawal whose record this process has rewritten. */
function keepWithdrawal(
  { memory: { off } }: ControllerCall,
  before: OwnedVolume,
  record: VolumeRecord,
  after: StoredVolume,
): void {
  if (isSameWithdrawal(before, record, after)) {
    off.rewrote(after.id, before.stored.comment, after.comment);
  }
}

/** Whether the export was off and stays off, by the same withdrawal from the same epoch. */
function isSameWithdrawal(before: OwnedVolume, record: VolumeRecord, after: StoredVolume): boolean {
  const { record: old, stored } = before;
  return !stored.exported && !after.exported && old.holders.length === 0 && record.holders.length === 0 &&
    old.withdrawnAtSeconds === record.withdrawnAtSeconds &&
    old.epoch?.counter === record.epoch?.counter && old.epoch?.nonce === record.epoch?.nonce;
}
