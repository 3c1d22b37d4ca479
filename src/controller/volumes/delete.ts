import { folderOf } from "../../volume/model/sources.ts";
import { assertAbsenceProven, assertPoolMounted, assertSettled } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import { poolOf } from "../../volume/model/ids.ts";
import { leftoversOf, locationOf } from "../../volume/model/layout.ts";
import { nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import { assertNotUsedByRouter } from "../../volume/rules/router_uses.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type {
  FileView,
  ImageLocation,
  Pool,
  StoredVolume,
  VolumeView,
} from "../../volume/model/inventory.ts";
import { ifSent, type MutationOutcome, sent } from "../../volume/ports/store.ts";
import { premisesToRemove } from "../records/premises.ts";
import {
  assertNotImported,
  assertNotShared,
  assertOwnImage,
  findUnused,
  foldersOf,
  ownFilePrefix,
} from "../load.ts";
import { answered, failMutation } from "../change.ts";
import { commit } from "../records/commit.ts";
import { migrateFirst } from "../legacy/migrate.ts";
import { waitForGrace, withdrawExport } from "../attachments/withdrawal.ts";
import { assertOneObject } from "../one_object.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Deletes a volume and its image, or finds both provably gone. Two commands; one when nothing is there, or when the router has
 * the record of an unpublished volume that this process has written last.
 *
 * @throws {VolumeError} precondition while a node holds it, when it is not this cluster's, or when several
 * PersistentVolumes name it; unavailable when it is not there and that proves nothing, or the router has just booted
 */
export async function deleteVolume(deps: ControllerDeps, id: string, context: CallContext): Promise<void> {
  const call = { ...deps, context };
  await assertOneObject(deps, id, context);
  // A copy that is being made for it is no longer wanted, and would come to light after its deletion.
  await deps.copies.cancel(id);
  const left = await deleteKnown(call, id);
  if (left === "nothing") return;
  await deleteRead(call, id, left?.view ?? await read(call, id), left?.folder);
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
  const view = await readAgain(call, id, judged);
  assertNotUsedByRouter(view.volume, "delete");
  if (view.volume.exported) {
    throw new VolumeError(
      "precondition",
      `Cannot delete the volume because somebody has exported it: volume=${id} nqn=${view.volume.exportNqn}`,
    );
  }
  await deleteRead(call, id, view);
}

async function read(call: ControllerCall, id: string): Promise<VolumeView> {
  return await call.store.view(id, ownFilePrefix(call, id), call.context);
}

/** @throws {VolumeError} busy or unavailable when the disk does not have that comment any more */
async function readAgain(
  call: ControllerCall,
  id: string,
  comment: string,
): Promise<VolumeView & { readonly volume: StoredVolume }> {
  const view = await read(call, id);
  const { volume } = view;
  if (volume?.comment === comment) return { ...view, volume };
  assertNotForeign(view.foreign, "delete");
  return failMutation("delete", id, comment, volume, undefined);
}

/** @param folder where the volume's image lay, if that is known although its disk is gone */
async function deleteRead(
  call: ControllerCall,
  id: string,
  view: VolumeView,
  folder?: string,
): Promise<void> {
  const { cluster } = call.settings;
  assertNotForeign(view.foreign, "delete");
  assertNotShared(call, id, view, "delete");
  if (view.volume !== undefined) {
    const stored = await migrateFirst(call, view, view.volume);
    const volume = assertOwned(stored, cluster, "delete");
    await deleteDisk(call, volume, { ...view, volume: stored });
    return;
  }
  const folders = foldersOf(call, id, folder);
  assertAbsenceProven(view, folders, call.settings.settleMs);
  call.misplaced?.assertNotSeen(cluster, id, "delete");
  await deleteLeftovers(call, id, view, folders);
}

/** What there is after a deletion that is not shown to be complete. */
interface Left {
  readonly view: VolumeView;
  /** The folder of the image. */
  readonly folder: string;
}

/**
 * Deletes a volume as this process remembers it. Returns "nothing" when nothing of it is left, else what there is; undefined
 * when nothing was sent.
 *
 * What the other way reads is checked all the same:
 *
 * - not another kind of disk, another cluster's or a newer version's, not held, not imported, its grace over: by the record that
 *   is remembered, and by the router, which removes only a disk with the same comment and with its export off;
 * - its own image, which no other disk uses, on a pool that is mounted, and nothing of it missing because the router has just
 *   booted: by the router in the statement, which removes nothing else;
 * - not the legacy driver's, nor judged by somebody else before: those are always read.
 */
async function deleteKnown(call: ControllerCall, id: string): Promise<Left | "nothing" | undefined> {
  const { settleMs, cluster } = call.settings;
  const known = findUnused(call, id, "delete");
  if (known === undefined) return undefined;
  const { stored } = known;
  const { imagePath } = stored;
  const filePrefix = ownFilePrefix(call, id);
  const location = locationIn(call.store.lastPools, imagePath);
  if (location === undefined) return undefined;
  const premises = premisesToRemove(stored, location, { filePrefix, settleMs });
  const after = ifSent(await commit(call, stored, { id, remove: location, filePrefix }, premises))?.after;
  if (after === undefined) return undefined;
  const isGone = after.volume === undefined && after.foreign === undefined && after.sharers.length === 0 &&
    after.files.length === 0 && after.upMs >= settleMs &&
    after.pools.some(({ mountPoint }) => mountPoint === poolOf(imagePath));
  if (!isGone) return { view: after, folder: folderOf(known, cluster) };
  forgetDeleted(call, stored);
  return "nothing";
}

/** Where an image lies, by the pools as they were read last; undefined where they do not tell. */
function locationIn(pools: readonly Pool[], imagePath: string): ImageLocation | undefined {
  try {
    return locationOf(imagePath, pools);
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) return undefined;
    throw error;
  }
}

/** What a disk was promised is free when it is gone, whatever becomes of its image. */
function forgetDeleted(call: ControllerCall, { id, imagePath, sizeBytes }: StoredVolume): void {
  call.memory.forget(id);
  call.promised.noteDeleted(poolOf(imagePath), sizeBytes);
}

async function deleteDisk(call: ControllerCall, found: OwnedVolume, view: VolumeView): Promise<void> {
  assertNotHeld(found);
  assertNotImported(
    found,
    "delete",
    `nothing is removed; set its PersistentVolume's reclaim policy to Retain, and give the disk back by ` +
      `"rds-csi release ${found.stored.id}"`,
  );
  assertOwnImage(call, found, "delete");
  // The image comes back with the pool, and without its disk nothing shows whose image it is.
  assertPoolMounted(view, found.stored.imagePath);
  // Another disk of the same image may come back late, and the router would find nobody who uses the image.
  assertSettled(view, call.settings.settleMs);
  const location = locationOf(found.stored.imagePath, view.pools);
  const volume = found.stored.exported ? await withdrawExport(call, found, "delete") : found;
  const { id, comment } = volume.stored;
  // A person may have turned the export on meanwhile, and a node may be writing.
  if (await waitForGrace(call, volume, "delete")) {
    return await deleteRead(call, id, await readAgain(call, id, comment));
  }
  const write = { id, remove: location, filePrefix: ownFilePrefix(call, id) };
  const outcome = sent(await commit(call, volume.stored, write));
  const left = outcome.after.volume;
  if (left !== undefined) failMutation("delete", id, comment, left, outcome.refusal);
  if (outcome.after.foreign !== undefined) assertNotForeign(outcome.after.foreign, "delete");
  forgetDeleted(call, volume.stored);
  assertDeleted(id, location.path, outcome);
  await deleteLeftovers(
    call,
    id,
    outcome.after,
    foldersOf(call, id, folderOf(volume, call.settings.cluster)),
  );
}

/** Deletes images that an earlier delete left when it was cut off after the disk, and copies no longer needed. */
async function deleteLeftovers(
  call: ControllerCall,
  id: string,
  view: FileView,
  basePaths: readonly string[],
): Promise<void> {
  const filePrefix = ownFilePrefix(call, id);
  let latest = view;
  for (const location of leftoversOf(view.files, filePrefix, basePaths, view.pools)) {
    const outcome = await call.store.removeImage(location, filePrefix, call.context);
    assertDeleted(id, location.path, outcome);
    latest = outcome.after;
  }
  const left = leftoversOf(latest.files, filePrefix, basePaths, latest.pools)[0];
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
    `Cannot delete the volume because the image is still there: volume=${id} path=${path}${
      answered(refusal)
    }; ` +
      "if it has snapshots or clones, delete them first: this router may keep it for them",
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
