import { assertAbsenceProven, assertPoolMounted } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FileView, ImagePlace } from "../../volume/model/inventory.ts";
import { snapshotPart, snapshotPlaces } from "../../volume/model/snapshots.ts";
import { assertNoClonesHold } from "../volumes/dependents.ts";
import { answered, removeSnapshotImage } from "../change.ts";
import type { ControllerCall, ControllerWorld } from "../deps.ts";

/**
 * Deletes a snapshot, whole or still being copied, or finds it provably gone. Two commands; one when nothing is there.
 *
 * @throws {VolumeError} precondition while this router keeps it for the volumes made from it; unavailable when it is not
 * there and that proves nothing
 */
export async function deleteSnapshot(
  world: ControllerWorld,
  id: string,
  context: CallContext,
): Promise<void> {
  const call = { ...world, context };
  await world.copies.cancel(id);
  const part = snapshotPart(id);
  const { basePaths, cluster, settleMs } = world.settings;
  const view = await world.store.files(part, context);
  assertAbsenceProven(view, basePaths, settleMs);
  const places = (shown: FileView) => snapshotPlaces(shown.files, id, cluster, basePaths, shown.pools);
  const found = places(view);
  if (found.length === 0) return;
  await assertNoClonesHold(call, { id });
  let latest = view;
  for (const place of found) latest = await removeOne(call, id, place);
  const left = places(latest)[0];
  if (left !== undefined) failLeft(id, left.path, undefined);
}

async function removeOne(call: ControllerCall, id: string, place: ImagePlace): Promise<FileView> {
  const { after, refusal } = await removeSnapshotImage(call, id, place);
  assertPoolMounted(after, place.path);
  if (after.files.some((file) => file.path === place.path)) failLeft(id, place.path, refusal);
  return after;
}

function failLeft(id: string, path: string, refusal: string | undefined): never {
  throw new VolumeError(
    "unavailable",
    `Cannot delete the snapshot as it is still there: snapshot=${id} path=${path}${answered(refusal)}`,
  );
}
