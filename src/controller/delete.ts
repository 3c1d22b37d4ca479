import { assertAbsenceProven, assertPoolMounted } from "../volume/absence.ts";
import { VolumeError } from "../volume/errors.ts";
import { assertNotForeign, assertOwned, type OwnedVolume } from "../volume/ownership.ts";
import type { CallContext, MutationOutcome, StoredFile, VolumeView } from "../volume/ports.ts";
import { assertNotShared, assertOwnImage, imagePaths } from "./look.ts";
import { failMutation, remembered } from "./outcome.ts";
import { waitForGrace, withdrawExport } from "./withdrawal.ts";
import type { ControllerWorld } from "./world.ts";

/**
 * Deletes a volume and its image, or finds both provably gone. Two commands; one when nothing is there.
 *
 * @throws {VolumeError} precondition while a node holds it, or when it is not this cluster's; unavailable when it is
 * not there and that proves nothing
 */
export async function deleteVolume(world: ControllerWorld, id: string, context: CallContext): Promise<void> {
  const ownPaths = imagePaths(world, id);
  const view = await world.store.view(id, ownPaths, context);
  assertNotForeign(view.foreign, "delete");
  assertNotShared(id, view, "delete");
  if (view.volume !== undefined) {
    await deleteDisk(world, assertOwned(view.volume, world.settings.cluster, "delete"), view, context);
    return;
  }
  assertAbsenceProven(view, world.settings.basePaths, world.settings.settleMs);
  for (const file of view.files.filter((file) => !file.directory && ownPaths.includes(file.path))) {
    await deleteImage(world, id, file, context);
  }
}

async function deleteDisk(
  world: ControllerWorld,
  found: OwnedVolume,
  view: VolumeView,
  context: CallContext,
): Promise<void> {
  assertNotHeld(found);
  assertOwnImage(world, found.stored, "delete");
  const volume = found.stored.exported ? await withdrawExport(world, found, "delete", context) : found;
  await waitForGrace(world, volume, view, "delete", context);
  const { id, comment, imagePath } = volume.stored;
  const outcome = await remembered(
    world,
    volume.stored,
    () => world.store.remove(id, comment, imagePath, context),
  );
  const left = outcome.after.volume;
  if (left !== undefined) failMutation("delete", id, comment, left, outcome.refusal);
  assertDeleted(id, imagePath, outcome);
}

/** What an earlier delete left when it was cut off between the disk and its file. */
async function deleteImage(
  world: ControllerWorld,
  id: string,
  file: StoredFile,
  context: CallContext,
): Promise<void> {
  assertDeleted(id, file.path, await world.store.remove(id, undefined, file.path, context));
}

function assertDeleted(id: string, path: string, outcome: MutationOutcome<VolumeView>): void {
  const { after, refusal } = outcome;
  const left = [
    ...(after.volume === undefined && after.foreign === undefined ? [] : ["the disk is still there"]),
    ...after.files.some((file) => file.path === path) ? ["the image is still there"] : [],
  ];
  if (left.length > 0) {
    const words = refusal === undefined
      ? ""
      : `; the router answered ${JSON.stringify(refusal.slice(0, 200))}`;
    throw new VolumeError(
      "unavailable",
      `Cannot delete the volume as ${left.join(" and ")}: volume=${id} path=${path}${words}`,
    );
  }
  // A pool that went away in between shows no file either.
  assertPoolMounted(after, path);
}

function assertNotHeld(volume: OwnedVolume): void {
  const { holders } = volume.record;
  if (holders.length === 0) return;
  throw new VolumeError(
    "precondition",
    `Cannot delete the volume as it is published: volume=${volume.stored.id} ` +
      `node=${holders.map((holder) => holder.nodeId).join(", ")}`,
  );
}
