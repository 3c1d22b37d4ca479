import { assertAbsenceProven, assertPoolMounted, assertShown } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import type { FileView, ImageLocation } from "../../volume/model/inventory.ts";
import {
  ownSnapshots,
  parseSnapshots,
  snapshotLocations,
  snapshotPart,
} from "../../volume/model/snapshots/snapshots.ts";
import { answered } from "../not_done.ts";
import { removeSnapshotImage } from "./remove.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Deletes a snapshot, whole or still being copied, or finds it provably gone. Two commands; one when nothing is there.
 *
 * @throws {VolumeError} unavailable when it is not there and that proves nothing, or the router keeps it
 */
export async function deleteSnapshot(
  deps: ControllerDeps,
  id: string,
  context: CallContext,
): Promise<void> {
  const call = { ...deps, context };
  await deps.copies.cancel(id);
  const part = snapshotPart(id);
  const { basePaths, cluster, settleMs } = deps.settings;
  const view = await deps.store.files(part, context);
  assertShown(view, basePaths, settleMs);
  for (const base of basePaths) {
    if (view.files.some(({ path }) => path.startsWith(`${base}/`))) assertPoolMounted(view, base);
  }
  // A snapshot lies on one pool, and only a whole image tells on which.
  const isWhole = ownSnapshots(parseSnapshots(view.files), cluster, basePaths)
    .some((one) => one.id === id && one.ready);
  if (!isWhole) assertAbsenceProven(view, basePaths, settleMs);
  const locations = (shown: FileView) => snapshotLocations(shown.files, id, cluster, basePaths, shown.pools);
  const found = locations(view);
  if (found.length === 0) return;
  let latest = view;
  for (const location of found) {
    latest = await removeOne(call, id, location);
    const image = view.files.find(({ path }) => path === location.path);
    if (image !== undefined) call.promised.noteDeleted(poolOf(image.path), image.sizeBytes);
  }
  const left = locations(latest)[0];
  if (left !== undefined) failLeft(id, left.path, undefined);
}

async function removeOne(call: ControllerCall, id: string, location: ImageLocation): Promise<FileView> {
  const { after, refusal } = await removeSnapshotImage(call, id, location);
  assertPoolMounted(after, location.path);
  if (after.files.some((file) => file.path === location.path)) failLeft(id, location.path, refusal);
  return after;
}

function failLeft(id: string, path: string, refusal: string | undefined): never {
  throw new VolumeError(
    "unavailable",
    "Cannot delete the snapshot because it is still there: " +
      `snapshot=${id} path=${path}${answered(refusal)}; if volumes were made from it, delete them first: ` +
      "this router may keep it for them",
  );
}
