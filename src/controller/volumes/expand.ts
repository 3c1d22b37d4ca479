import { folderOf } from "../../volume/model/sources.ts";
import { assertGone } from "../../volume/rules/absence.ts";
import { assertRoom } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { type OwnedVolume, rewritten } from "../../volume/model/record.ts";
import { assertSizeRange, chooseGrownSize, type SizeRange } from "../../volume/model/sizes.ts";
import { assertOwnImage, notFound, ownFilePrefix } from "../load.ts";
import { outdateInDoubt, writeRecord } from "../change.ts";
import { reportingRefusal, spaceRefusal } from "../refusals.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Grows a volume and returns its size as read back, in bytes; its present size when that is enough. Two commands; one
 * when there is nothing to do.
 *
 * @throws {VolumeError} not-found, out-of-range, exhausted, unavailable; precondition when this router does not grow a
 * disk, or not one that is exported
 */
export async function expandVolume(
  deps: ControllerDeps,
  id: string,
  range: SizeRange,
  context: CallContext,
): Promise<bigint> {
  const call = { ...deps, context };
  const refusal = (error: VolumeError) => spaceRefusal(id, error);
  return await reportingRefusal(deps, refusal, () => expand(call, id, range));
}

async function expand(call: ControllerCall, id: string, range: SizeRange): Promise<bigint> {
  assertSizeRange(range);
  const { settings, store } = call;
  const filePrefix = ownFilePrefix(call, id);
  const view = await store.createView({ id, filePrefix, folder: "" }, call.context);
  assertNotForeign(view.foreign, "expand");
  const found = view.volumes.find((volume) => volume.id === id);
  if (found === undefined) {
    assertGone(id, filePrefix, view, settings.basePaths, settings.settleMs);
    throw notFound("expand", id);
  }
  const volume = assertOwned(found, settings.cluster, "expand");
  assertOwnImage(call, volume, "expand");
  const sizeBytes = chooseGrownSize(range, found.sizeBytes);
  if (sizeBytes === found.sizeBytes) {
    await outdateInDoubt(call, "expand", volume);
    return sizeBytes;
  }
  assertRoom(view, folderOf(volume, settings.cluster), sizeBytes - found.sizeBytes, settings.overcommit);
  return (await growVolume(call, "expand", volume, sizeBytes)).stored.sizeBytes;
}

/**
 * Grows a disk, and returns it as read back. One command.
 *
 * @throws {VolumeError} precondition when this router does not grow a disk, or not one that is exported; busy when another call grows it, too; unavailable
 */
export async function growVolume(
  call: ControllerCall,
  verb: string,
  volume: OwnedVolume,
  sizeBytes: bigint,
): Promise<OwnedVolume> {
  const { stored, record } = volume;
  assertGrows(call, verb, stored);
  // The record changes too: a command that the router runs late, after a larger growth, must find nothing to shrink.
  const grown = await writeRecord(call, verb, volume, rewritten(record), () => true, { sizeBytes });
  const after = grown.stored;
  if (after.sizeBytes >= sizeBytes) return grown;
  if (after.sizeBytes !== stored.sizeBytes) {
    throw new VolumeError(
      "busy",
      `Cannot ${verb} the volume as it was grown to another size at the same time: volume=${stored.id} ` +
        `size=${after.sizeBytes} wanted=${sizeBytes}; try again`,
    );
  }
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume as the router took the new size and did not grow the disk: volume=${stored.id} ` +
      `size=${after.sizeBytes} wanted=${sizeBytes}; rds-csi doctor --probe tells what this router can do`,
  );
}

/**
 * Refuses, before anything is changed, what this router is known not to do.
 *
 * @throws {VolumeError} precondition
 */
export function assertGrows(
  deps: ControllerDeps,
  verb: string,
  stored: Pick<StoredVolume, "id" | "exported">,
): void {
  const { growth } = deps.settings;
  const reason = growth === "never"
    ? "this router does not grow file-backed disks"
    : growth === "after-toggle" && stored.exported
    ? "this router grows a disk only while it is not exported: unpublish it first (stop what uses it)"
    : undefined;
  if (reason === undefined) return;
  throw new VolumeError("precondition", `Cannot ${verb} the volume as ${reason}: volume=${stored.id}`);
}
