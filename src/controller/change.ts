import { getOwned } from "../volume/rules/ownership.ts";
import { VolumeError } from "../volume/errors.ts";
import { poolOf } from "../volume/model/ids.ts";
import { filePrefixOf } from "../volume/model/layout.ts";
import type { FileView, ImageLocation, StoredVolume } from "../volume/model/inventory.ts";
import { type MutationOutcome, sent, type VolumeChange } from "../volume/ports/store.ts";
import { commit } from "./records/commit.ts";
import {
  formatComment,
  maxCommentBytes,
  type OwnedVolume,
  parseComment,
  rewritten,
  type VolumeRecord,
} from "../volume/model/record.ts";
import { snapshotPart } from "../volume/model/snapshots.ts";
import { commentWithoutRecord } from "../volume/rules/legacy_migration.ts";
import type { ControllerCall } from "./deps.ts";

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
  // By a person's hand another disk may be in the slot, with the same comment.
  if (after !== undefined && after.imagePath !== before.imagePath) throw changedMeanwhile(verb, before.id);
  if (after !== undefined && wanted(after)) {
    const kept = await confirmKept(call, verb, before, after, wanted);
    const isRewritten = change.comment !== undefined && change.comment !== before.comment;
    if (!isRewritten) call.memory.known.remember(kept, before.comment);
    else call.memory.wrote(kept, before.comment);
    return kept;
  }
  const written = change.comment ?? before.comment;
  if (after !== undefined && isCut(after.comment, written)) {
    await restoreComment(call, before, after);
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

/** The comment of a volume with that record in it. @throws {VolumeError} precondition when it does not fit */
export function commentWith(volume: OwnedVolume, record: VolumeRecord): string {
  return formatComment({ ...volume.comment, record }, roomFor(volume));
}

/** Whether the router keeps the whole comment of a volume with that record in it. */
export function fits(volume: OwnedVolume, record: VolumeRecord): boolean {
  return byteLength(formatComment({ ...volume.comment, record }, Infinity)) <= roomFor(volume);
}

/** How long the comment of a volume may be, in bytes: what the router keeps of it now, it keeps again. */
function roomFor({ stored }: Pick<OwnedVolume, "stored">): number {
  return Math.max(maxCommentBytes, byteLength(stored.comment));
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/**
 * Writes the record of a volume, with whatever else changes, and returns the volume as it was read afterwards. One command.
 *
 * @throws {VolumeError} busy or unavailable, as {@linkcode changeVolume} does; precondition when the record does not fit
 */
export async function writeRecord(
  call: ControllerCall,
  verb: string,
  volume: OwnedVolume,
  record: VolumeRecord,
  wanted: (after: StoredVolume) => boolean,
  change: Omit<VolumeChange, "comment"> = {},
): Promise<OwnedVolume> {
  const comment = commentWith(volume, record);
  const rewrite = comment === volume.stored.comment ? {} : { comment };
  const isWritten = (after: StoredVolume) => after.comment === comment && wanted(after);
  const after = await changeVolume(call, verb, volume.stored, { ...change, ...rewrite }, isWritten);
  if (change.export === undefined) keepWithdrawal(call, volume, record, after);
  return getOwned(after, call.settings.cluster, verb);
}

/** Keeps the age of a withdrawal whose record this process has rewritten. */
export function keepWithdrawal(
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

/**
 * Whether a router has kept only the beginning of a comment that was written. Nothing at all is a person's doing, and a note
 * without the record behind it is what was there before the record was.
 */
export function isCut(kept: string, written: string): boolean {
  const parsed = parseComment(written);
  const note = parsed.state === "record" ? commentWithoutRecord(parsed.comment) : undefined;
  return kept !== "" && kept !== note && kept.length < written.length && written.startsWith(kept);
}

/** The error for a router that keeps too little of a comment. */
export function cutComment(verb: string, id: string, keptBytes: number): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because the router keeps only ${keptBytes} bytes of a comment: volume=${id}; shorten node ids ` +
      "or the note in the disk's comment (rds-csi doctor --probe shows the router's limits)",
  );
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

/**
 * Removes the image of a snapshot. A removal whose end stays unknown is remembered: the router may still run it, and take
 * away what a later call answers.
 */
export async function removeSnapshotImage(
  call: ControllerCall,
  id: string,
  location: ImageLocation,
): Promise<MutationOutcome<FileView>> {
  let isOver = false;
  try {
    const outcome = await call.store.removeImage(location, snapshotPart(id), call.context);
    const { pools, files } = outcome.after;
    const isMounted = pools.some((pool) => pool.mountPoint === poolOf(location.path));
    isOver = outcome.ended && isMounted && !files.some((file) => file.path === location.path);
    return outcome;
  } finally {
    if (!isOver) call.memory.inDoubt.remember(id, location.path);
  }
}

/**
 * Rewrites the record of a volume if a change that was sent earlier may still come, so that it finds another comment
 * than it expects. No command where none may, else one.
 *
 * @throws {VolumeError} busy when that change came first
 */
export async function outdateInDoubt(
  call: ControllerCall,
  verb: string,
  volume: OwnedVolume,
): Promise<void> {
  const { stored } = volume;
  if (!call.memory.inDoubt.mayStillApply(stored.id, stored.comment)) return;
  const isAsItWas = (after: StoredVolume) =>
    after.exported === stored.exported &&
    (!after.exported || after.exportNqn === stored.exportNqn && after.exportPort === stored.exportPort);
  await writeRecord(call, verb, volume, rewritten(volume.record), isAsItWas);
}
