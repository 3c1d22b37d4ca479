import { folderOf, isPlain } from "../../volume/model/sources.ts";
import { assertAbsenceProven, assertPoolMounted, assertSettled } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import { leftoversOf, locationOf } from "../../volume/model/layout.ts";
import { nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import { assertNotUsedByRouter } from "../../volume/rules/router_uses.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FileView, StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import type { MutationOutcome } from "../../volume/ports/store.ts";
import { assertNotShared, assertOwnImage, foldersOf, ownFilePrefix } from "../load.ts";
import { assertNotImported } from "../../volume/rules/import.ts";
import { answered, failMutation } from "../not_done.ts";
import { assertInNoOtherSlot } from "../other_slots.ts";
import { type About, changeByRule, type Decision } from "../records/loop.ts";
import { removing } from "../records/remove.ts";
import { withdrawal } from "../records/steps.ts";
import { readSlot, type View } from "../records/view.ts";
import { assertOneObject } from "../one_object.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Deletes a volume and its image, or finds both provably gone. Two commands; one when the router has the record of an unpublished
 * volume that this process has written last.
 *
 * @throws {VolumeError} precondition while a node holds it, when it is not this cluster's, or when several
 * PersistentVolumes name it; unavailable when it is not there and that proves nothing, or the router has just booted
 */
export async function deleteVolume(deps: ControllerDeps, id: string, context: CallContext): Promise<void> {
  const call = { ...deps, context };
  await assertOneObject(deps, id, context);
  // A copy that is being made for it is no longer wanted, and would come to light after its deletion.
  await deps.copies.cancel(id);
  await deleteByRule(call, { id, verb: "delete", read: () => readSlot(call, id) });
}

/**
 * Deletes a volume that was judged to have no owner, as {@linkcode deleteVolume} does, if its disk still has the comment by which
 * that was decided, and nobody uses it: a list of all disks shows few of the router's uses.
 *
 * @throws {VolumeError} as `deleteVolume()` does; busy or unavailable when the comment is another one; precondition while it is
 * exported, or the router itself uses it
 */
export async function deleteUnowned(
  deps: ControllerDeps,
  id: string,
  judged: string,
  context: CallContext,
): Promise<void> {
  const call = { ...deps, context };
  await deps.copies.cancel(id);
  const readJudged = () => readUnused(call, id, judged);
  await deleteByRule(call, { id, verb: "delete", first: await readJudged(), read: readJudged });
}

async function deleteByRule(call: ControllerCall, about: About): Promise<void> {
  const ready = (view: View) => readyToDelete(call, view);
  const left = await changeByRule(call, { ...about, ready }, (view) => decideDeleting(call, view));
  await deleteLeftovers(call, about.id, left);
}

/** @throws {VolumeError} busy or unavailable when the disk does not have that comment any more; precondition when it is used */
async function readUnused(call: ControllerCall, id: string, comment: string): Promise<View> {
  const view = await readSlot(call, id);
  const { volume } = view;
  if (volume?.comment !== comment) {
    assertNotForeign(view.foreign, "delete");
    return failMutation("delete", id, comment, volume, undefined);
  }
  assertNotUsedByRouter(volume, "delete");
  if (!volume.exported) return view;
  throw new VolumeError(
    "precondition",
    `Cannot delete the volume because it was exported by hand: volume=${id} nqn=${volume.exportNqn}`,
  );
}

/** A volume of the legacy driver is taken over first. */
async function readyToDelete(call: ControllerCall, view: View): Promise<View> {
  assertNotForeign(view.foreign, "delete");
  assertNotShared(call, view.id, view, "delete");
  if (view.volume === undefined) return view;
  return { ...view, volume: await call.takeOver(call, view, view.volume) };
}

/** What there is of a volume without a disk. */
interface Left {
  readonly view: FileView;
  /** The folders in which its files may lie. */
  readonly folders: readonly string[];
}

/** Decides by what is known of the volume. Only one that nobody has and that is off is removed unread. */
async function decideDeleting(call: ControllerCall, view: View): Promise<Decision<Left>> {
  return view.volume === undefined ? await provenGone(call, view) : decideRemoving(call, view, view.volume);
}

async function provenGone(call: ControllerCall, view: View): Promise<Decision<Left>> {
  const { cluster, settleMs } = call.settings;
  const folders = foldersOf(call, view.id);
  assertAbsenceProven(view, folders, settleMs);
  await assertInNoOtherSlot(call, view, "delete");
  call.misplaced?.assertNotSeen(cluster, view.id, "delete");
  return { answer: { view, folders } };
}

function decideRemoving(call: ControllerCall, view: View, stored: StoredVolume): Decision<Left> {
  const { cluster, settleMs } = call.settings;
  const volume = assertOwned(stored, cluster, "delete");
  assertNotHeld(volume);
  assertNotImported(
    volume,
    "delete",
    `nothing is removed; set its PersistentVolume's reclaim policy to Retain, and give the disk back by ` +
      `"rds-csi release ${view.id}"`,
  );
  assertOwnImage(call, volume, "delete");
  // The image comes back with the pool, and without its disk nothing shows whose image it is.
  assertPoolMounted(view, stored.imagePath);
  // Another disk of the same image may come back late, and the router would find nobody who uses the image.
  assertSettled(view, settleMs);
  if (view.isAssumed && (stored.exported || !isPlain(volume, cluster))) return { need: "own" };
  const location = locationOf(stored.imagePath, view.pools);
  if (stored.exported) return { step: withdrawal(call, volume), next: () => "again" };
  return removing({ volume, location }, (left) => leftOf(call, volume, left));
}

/** What is left of a volume whose disk was removed: by a router that has all its disks, its pools and its last seconds. */
function leftOf(call: ControllerCall, volume: OwnedVolume, left: VolumeView): Left {
  const { cluster, settleMs } = call.settings;
  const { id, imagePath, sizeBytes } = volume.stored;
  assertNotForeign(left.foreign, "delete");
  assertNotShared(call, id, left, "delete");
  // A pool that went away in between shows no file.
  assertPoolMounted(left, imagePath);
  assertSettled(left, settleMs);
  // What a disk was promised is free when it is gone, whatever becomes of its image.
  call.promised.noteDeleted(poolOf(imagePath), sizeBytes);
  return { view: left, folders: foldersOf(call, id, folderOf(volume, cluster)) };
}

/** Deletes images that an earlier delete left when it was cut off after the disk, and copies no longer needed. */
async function deleteLeftovers(call: ControllerCall, id: string, { view, folders }: Left): Promise<void> {
  const filePrefix = ownFilePrefix(call, id);
  let latest = view;
  for (const location of leftoversOf(view.files, filePrefix, folders, view.pools)) {
    const outcome = await call.store.removeImage(location, filePrefix, call.context);
    assertDeleted(id, location.path, outcome);
    latest = outcome.after;
  }
  const left = leftoversOf(latest.files, filePrefix, folders, latest.pools)[0];
  if (left !== undefined) failLeft(id, left.path, undefined);
}

function assertDeleted(id: string, path: string, { after, refusal }: MutationOutcome<FileView>): void {
  if (after.files.some((file) => file.path === path)) failLeft(id, path, refusal);
  // A pool that went away in between shows no file either.
  assertPoolMounted(after, path);
}

function failLeft(id: string, path: string, refusal: string | undefined): never {
  throw new VolumeError(
    "unavailable",
    "Cannot delete the volume because the image is still there: " +
      `volume=${id} path=${path}${answered(refusal)}; if it has snapshots or clones, delete them first: ` +
      "this router may keep it for them",
  );
}

function assertNotHeld(volume: OwnedVolume): void {
  const { holders } = volume.record;
  if (holders.length === 0) return;
  throw new VolumeError(
    "precondition",
    `Cannot delete the volume because it is published: volume=${volume.stored.id} ` +
      `node=${nodeIdsOf(holders).join(", ")}; delete the pods that use it`,
  );
}
