import { folderOf } from "../../volume/model/sources.ts";
import { assertAbsenceProven, assertPoolMounted } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import { leftoversOf, locationOf } from "../../volume/model/layout.ts";
import { nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FileView, VolumeView } from "../../volume/model/inventory.ts";
import type { MutationOutcome } from "../../volume/ports/store.ts";
import { assertNoSnapshotsHold } from "./dependents.ts";
import { assertNotImported, assertNotShared, assertOwnImage, ownFilePrefix } from "../load.ts";
import { answered, failMutation, remembered } from "../change.ts";
import { migrateFirst } from "../legacy/migrate.ts";
import { waitForGrace, withdrawExport } from "../attachments/withdrawal.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Deletes a volume and its image, or finds both provably gone. Two commands; one when nothing is there.
 *
 * @param judged the comment of the disk on which the decision to delete was based; without it, the caller has decided
 * @throws {VolumeError} precondition while a node holds it, or when it is not this cluster's; unavailable when it is
 * not there and that proves nothing
 */
export async function deleteVolume(
  deps: ControllerDeps,
  id: string,
  context: CallContext,
  judged?: string,
): Promise<void> {
  try {
    await deleteWhole({ ...deps, context }, id, judged);
  } finally {
    // Also what a call has deleted that failed after that.
    deps.promised.noteFreed();
  }
}

async function deleteWhole(call: ControllerCall, id: string, judged: string | undefined): Promise<void> {
  // A copy that is being made for it is no longer wanted, and would come to light after its deletion.
  await call.copies.cancel(id);
  const view = await call.store.view(id, ownFilePrefix(call, id), call.context);
  assertNotForeign(view.foreign, "delete");
  assertNotShared(call, id, view, "delete");
  if (judged !== undefined && view.volume?.comment !== judged) {
    failMutation("delete", id, judged, view.volume, undefined);
  }
  if (view.volume !== undefined) {
    const stored = await migrateFirst(call, view, view.volume);
    const volume = assertOwned(stored, call.settings.cluster, "delete");
    await deleteDisk(call, volume, { ...view, volume: stored });
    return;
  }
  const { basePaths, cluster, settleMs } = call.settings;
  assertAbsenceProven(view, basePaths, settleMs);
  call.misplaced?.assertNotSeen(cluster, id, "delete");
  await deleteLeftovers(call, id, view, basePaths);
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
  await assertNoSnapshotsHold(call, found);
  const location = locationOf(found.stored.imagePath, view.pools);
  const volume = found.stored.exported ? await withdrawExport(call, found, "delete") : found;
  const { id, comment } = volume.stored;
  // A person may have turned the export on meanwhile, and a node may be writing.
  if (await waitForGrace(call, volume, view, "delete")) {
    return await deleteVolume(call, id, call.context, comment);
  }
  const outcome = await remembered(
    call,
    volume.stored,
    () => call.store.remove({ id, comment }, location, ownFilePrefix(call, id), call.context),
  );
  const left = outcome.after.volume;
  if (left !== undefined) failMutation("delete", id, comment, left, outcome.refusal);
  if (outcome.after.foreign !== undefined) assertNotForeign(outcome.after.foreign, "delete");
  assertDeleted(id, location.path, outcome);
  call.withdrawals.forget(id);
  call.known.forget(id);
  const basePaths = [...new Set([...call.settings.basePaths, folderOf(volume, call.settings.cluster)])];
  await deleteLeftovers(call, id, outcome.after, basePaths);
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
    }`,
  );
}

function assertNotHeld(volume: OwnedVolume): void {
  const { holders } = volume.record;
  if (holders.length === 0) return;
  throw new VolumeError(
    "precondition",
    `Cannot delete the volume because it is published: volume=${volume.stored.id} ` +
      `node=${nodeIdsOf(holders).join(", ")}`,
  );
}
