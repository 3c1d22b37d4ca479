import { folderOf } from "../../volume/model/sources.ts";
import { assertRoom, getPool } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { poolOf } from "../../volume/model/ids.ts";
import type { StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import { isExportedAsRecorded, isHeldLayered } from "../../volume/rules/publish.ts";
import { isEncrypted, type OwnedVolume, rewritten } from "../../volume/model/record.ts";
import { usableBytes, withHeader } from "../../volume/model/encryption.ts";
import { assertSizeRange, chooseGrownSize, type SizeRange } from "../../volume/model/sizes.ts";
import {
  assertImageShown,
  assertOwnImage,
  assertVolumeGone,
  findKnown,
  notFound,
  ownFilePrefix,
} from "../load.ts";
import { outdateInDoubt, writeRecord } from "../change.ts";
import { exported, growth } from "../records/steps.ts";
import { taken, takenUnread } from "../records/take.ts";
import { assertNotUsedByRouter } from "../../volume/rules/router_uses.ts";
import { reportingRefusal, spaceRefusal } from "../refusals.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Grows a volume and returns its size as read back, in bytes, without the header of an encrypted one; its present size when
 * that is enough. Two commands; one when there is nothing to do, or when the router has what this process has written last,
 * and ample room. Where the router shows a new size after a toggle only, the export of a volume in use is toggled if each of
 * its nodes has the device layer.
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
  return await expandKnown(call, id, range) ?? await expandWithinAmpleRoom(call, id, range) ??
    await expandByExactRead(call, id, range);
}

/**
 * Grows a volume as this process remembers it; undefined when it has to be read first, also to tell what is against it.
 *
 * The router looks that the disk has the remembered record and size, as a person may have grown it, and that its image is there.
 */
async function expandKnown(
  call: ControllerCall,
  id: string,
  range: SizeRange,
): Promise<bigint | undefined> {
  const known = findKnown(call, id, "expand");
  if (known === undefined || !growsAsKnown(call, known)) return undefined;
  const { sizeBytes: before, imagePath } = known.stored;
  const disk = withHeader(range, isEncrypted(known.record));
  if (disk.requiredBytes <= before) return undefined;
  const sizeBytes = chooseGrownSize(disk, before);
  const [pool, moreBytes] = [poolOf(imagePath), sizeBytes - before];
  if (call.promised.amplePool(pool, moreBytes) === undefined) return undefined;
  const grown = await call.promised.during(
    pool,
    moreBytes,
    () => takenUnread(call, "expand", growth(known, sizeBytes)),
    (grown) => grown === undefined ? "perhaps" : true,
  );
  if (grown === undefined) return undefined;
  assertGrown("expand", before, grown.stored, sizeBytes);
  return sizeForUser(grown);
}

/** Whether this router lets such a disk grow without more being done to it. */
function growsAsKnown({ settings: { growth } }: ControllerCall, { stored, record }: OwnedVolume): boolean {
  return growth === "live" || !stored.exported && record.holders.length === 0;
}

/** Reads no other disk; undefined when only an exact read can tell whether there is room. */
async function expandWithinAmpleRoom(
  call: ControllerCall,
  id: string,
  range: SizeRange,
): Promise<bigint | undefined> {
  if (!call.promised.expects(range.requiredBytes)) return undefined;
  const view = await call.store.view(id, ownFilePrefix(call, id), call.context);
  const { volume, sizeBytes } = await planGrowth(call, id, range, view);
  const { stored } = volume;
  if (sizeBytes === stored.sizeBytes) return sizeForUser(volume);
  const pool = getPool(view, stored.imagePath);
  const moreBytes = sizeBytes - stored.sizeBytes;
  if (moreBytes > pool.freeBytes || !call.promised.isAmple(pool, moreBytes)) return undefined;
  return await growPromised(call, volume, sizeBytes);
}

async function expandByExactRead(call: ControllerCall, id: string, range: SizeRange): Promise<bigint> {
  const wanted = { id, filePrefix: ownFilePrefix(call, id), folder: "" };
  const view = await call.promised.learnFrom(() => call.store.createView(wanted, call.context));
  const shown = { ...view, volume: view.volumes.find((volume) => volume.id === id) };
  const { volume, sizeBytes } = await planGrowth(call, id, range, shown);
  const { settings } = call;
  const moreBytes = sizeBytes - volume.stored.sizeBytes;
  if (moreBytes === 0n) return sizeForUser(volume);
  assertRoom(view, folderOf(volume, settings.cluster), moreBytes, settings.overcommit);
  return await growPromised(call, volume, sizeBytes);
}

/** What the disk leaves to a user of the volume, in bytes. */
function sizeForUser({ stored, record }: OwnedVolume): bigint {
  return usableBytes(stored.sizeBytes, isEncrypted(record));
}

/** The volume, and the size that its disk is to have; its present one when that is enough. */
async function planGrowth(
  call: ControllerCall,
  id: string,
  range: SizeRange,
  view: Pick<VolumeView, "pools" | "upMs" | "foreign" | "volume" | "files">,
): Promise<{ readonly volume: OwnedVolume; readonly sizeBytes: bigint }> {
  const { settings } = call;
  assertNotForeign(view.foreign, "expand");
  if (view.volume === undefined) {
    assertVolumeGone(call, id, view);
    throw notFound("expand", id);
  }
  const volume = assertOwned(view.volume, settings.cluster, "expand");
  assertOwnImage(call, volume, "expand");
  assertImageShown(volume, view, "expand");
  const sizeBytes = chooseGrownSize(withHeader(range, isEncrypted(volume.record)), volume.stored.sizeBytes);
  if (sizeBytes === volume.stored.sizeBytes) {
    if (await turnOnAgain(call, volume) === undefined) await outdateInDoubt(call, "expand", volume);
  }
  return { volume, sizeBytes };
}

async function growPromised(call: ControllerCall, volume: OwnedVolume, sizeBytes: bigint): Promise<bigint> {
  const { imagePath } = volume.stored;
  const grow = () => growVolume(call, "expand", volume, sizeBytes);
  const grown = await call.promised.during(poolOf(imagePath), sizeBytes - volume.stored.sizeBytes, grow);
  return sizeForUser(grown);
}

/**
 * Grows a disk, and returns it as read back. One command.
 *
 * @throws {VolumeError} precondition when this router does not grow a disk, or not one that is exported; busy when another
 * call grows it, too; unavailable
 */
export async function growVolume(
  call: ControllerCall,
  verb: string,
  volume: OwnedVolume,
  sizeBytes: bigint,
): Promise<OwnedVolume> {
  const { stored, record } = volume;
  assertGrows(call, verb, stored.id, stored.exported && !mayToggle(call, volume));
  const { exported, exportNqn } = stored;
  const bounce = exported && call.settings.growth === "after-toggle";
  const isBack = (after: StoredVolume) => !bounce || (after.exported && after.exportNqn === exportNqn);
  const grow = async () => {
    // The record changes too: a command that the router runs late, after a larger growth, must find nothing to shrink.
    const grown = await writeRecord(call, verb, volume, rewritten(record), isBack, { sizeBytes, bounce });
    assertGrown(verb, stored.sizeBytes, grown.stored, sizeBytes);
    return await turnOnAgain(call, grown) ?? grown;
  };
  return bounce ? await neverLeftOff(call, stored.id, grow) : await grow();
}

/**
 * Grows a volume in use; where that fails, its export is turned on again, as the router may have refused the size behind the
 * "off", and nodes wait. What cannot be done now, the next expansion or the controller's reconcile loop does.
 */
async function neverLeftOff(
  call: ControllerCall,
  id: string,
  grow: () => Promise<OwnedVolume>,
): Promise<OwnedVolume> {
  try {
    return await grow();
  } catch (error) {
    const { context, notes, settings } = call;
    // Whoever has lost the lead changes nothing any more.
    if (context.signal.aborted) throw error;
    try {
      const view = await call.store.view(id, ownFilePrefix(call, id), context);
      const left = view.volume && assertOwned(view.volume, settings.cluster, "expand");
      if (left !== undefined) {
        assertOwnImage(call, left, "expand");
        assertImageShown(left, view, "expand");
        await turnOnAgain(call, left);
      }
    } catch (reason) {
      notes.warn("an export could not be turned on again after a failed expansion", {
        volume: id,
        reason: String(reason),
      });
    }
    throw error;
  }
}

function assertGrown(verb: string, before: bigint, after: StoredVolume, wanted: bigint): StoredVolume {
  if (after.sizeBytes >= wanted) return after;
  if (after.sizeBytes !== before) {
    throw new VolumeError(
      "busy",
      `Cannot ${verb} the volume because it was grown to another size at the same time: volume=${after.id} ` +
        `size=${after.sizeBytes} wanted=${wanted}; try again`,
    );
  }
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because the router took the new size and did not grow the disk: volume=${after.id} ` +
      `size=${after.sizeBytes} wanted=${wanted}; rds-csi doctor --probe shows what this router can do`,
  );
}

/**
 * Refuses, before anything is changed, what this router is known not to do.
 *
 * @param isInUse whether the disk is exported to a node that its absence would hurt
 * @throws {VolumeError} precondition
 */
export function assertGrows(deps: ControllerDeps, verb: string, id: string, isInUse: boolean): void {
  const { growth } = deps.settings;
  if (growth === "live" || !isInUse) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because this router grows a disk only while it is not exported: unpublish it first ` +
      `(stop its pods); in use it grows only with deviceLayer multipath and a probed router: volume=${id}`,
  );
}

/** Whether its nodes wait while the export is off, and the router itself leaves the disk alone meanwhile. */
function mayToggle({ settings }: ControllerCall, volume: OwnedVolume): boolean {
  return settings.growsByToggle && volume.stored.routerUses === undefined &&
    isHeldLayered(volume) && isExportedAsRecorded(volume);
}

/**
 * Turns an export on again that an expansion has left off, because it was cut off in between. One command; undefined, and
 * none, for any other volume.
 */
async function turnOnAgain(call: ControllerCall, volume: OwnedVolume): Promise<OwnedVolume | undefined> {
  const { stored, record } = volume;
  const wasOn = isHeldLayered(volume) &&
    isExportedAsRecorded({ ...volume, stored: { ...stored, exported: true } });
  if (stored.exported || call.settings.growth !== "after-toggle" || !wasOn) return undefined;
  assertNotUsedByRouter(stored, "expand");
  const same = { record: rewritten(record), port: stored.exportPort };
  return await taken(call, "publish", exported(call, "continue", volume, same));
}
