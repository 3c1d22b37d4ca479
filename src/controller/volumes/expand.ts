import { folderOf, isPlain } from "../../volume/model/sources.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { isExportedAsRecorded } from "../../volume/rules/publish.ts";
import { isEncrypted, type OwnedVolume, rewritten } from "../../volume/model/record.ts";
import { usableBytes, withHeader } from "../../volume/model/encryption.ts";
import { assertSizeRange, chooseGrownSize, type SizeRange } from "../../volume/model/sizes.ts";
import {
  assertImageShown,
  assertOwnImage,
  assertVolumeGone,
  heldBytes,
  notFound,
  withImage,
} from "../load.ts";
import { readEvery } from "../reads.ts";
import { changeByRule, type Decision, type Level } from "../records/loop.ts";
import { exported, growth, type Step } from "../records/steps.ts";
import { readSlot, type View } from "../records/view.ts";
import { roomFor } from "./room.ts";
import { assertNotUsedByRouter } from "../../volume/rules/router_uses.ts";
import { reportingRefusal, spaceRefusal } from "../refusals.ts";
import { tidy } from "../tidy.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Grows a volume and returns its size as read back, in bytes, without the header of an encrypted one; its present size when
 * that is enough. Two commands; one when there is nothing to do, or when the router has what this process has written last,
 * and ample room; one more of an imported volume. Where the router shows a new size after a toggle only, the export of a
 * volume in use is toggled if each of its nodes has the device layer.
 *
 * @throws {VolumeError} not-found, unavailable; out-of-range also where there is no room; precondition when this router does not
 * grow a disk, or not one that is exported
 */
export async function expandVolume(
  deps: ControllerDeps,
  id: string,
  range: SizeRange,
  context: CallContext,
): Promise<bigint> {
  const call = { ...deps, context };
  const refusal = (error: VolumeError) => spaceRefusal(id, error);
  try {
    return await reportingRefusal(deps, refusal, () => expand(call, id, range));
  } catch (error) {
    if (!VolumeError.is(error, "exhausted")) throw error;
    // RESOURCE_EXHAUSTED is no final error to a resizer: it would ask for this size for ever, whatever less the claim asks for by
    // then (`IsFinalError` in its `util.go`). This code it tries again, too.
    throw new VolumeError("out-of-range", error.message, { cause: error });
  }
}

async function expand(call: ControllerCall, id: string, range: SizeRange): Promise<bigint> {
  assertSizeRange(range);
  const look = (level: Level) =>
    level === "own" && call.promised.expects(range.requiredBytes) ? readSlot(call, id) : readEvery(call, id);
  const read = async (level: Level) => await withImage(call, await look(level), "expand");
  const rule = (view: View) => decideGrowing(call, view, range);
  const { stored, record } = await changeByRule(call, { id, verb: "expand", read }, rule);
  // What the disk leaves to a user of the volume.
  return usableBytes(stored.sizeBytes, isEncrypted(record));
}

/**
 * Decides by what is known of the volume. A disk that is remembered grows unread, held or not, but for one in use where this
 * router shows a larger size after a toggle only.
 */
function decideGrowing(call: ControllerCall, view: View, range: SizeRange): Promise<Decision<OwnedVolume>> {
  return Promise.resolve(growing(call, view, range));
}

function growing(call: ControllerCall, view: View, range: SizeRange): Decision<OwnedVolume> {
  const { cluster, growth } = call.settings;
  const volume = existing(call, view);
  const { stored, record } = volume;
  const wanted = withHeader(range, isEncrypted(record));
  if (chooseGrownSize(wanted, stored.sizeBytes) === stored.sizeBytes) {
    const on = turnedOn(call, volume);
    return on === undefined ? { answer: volume, stands: volume } : { step: on, next: (after) => after };
  }
  const sizeBytes = chooseGrownSize(wanted, heldBytes(stored, view));
  const isInUse = stored.exported || record.holders.length > 0;
  const isOdd = !isPlain(volume, cluster) || growth === "after-toggle" && isInUse;
  if (view.isAssumed && isOdd) return { need: "own" };
  return grownTo(call, "expand", view, { volume, sizeBytes }, (after) => after);
}

/** The volume is that large, where there is room for it. */
export function grownTo<Answer>(
  call: ControllerCall,
  verb: string,
  view: View,
  { volume, sizeBytes }: { readonly volume: OwnedVolume; readonly sizeBytes: bigint },
  answer: (after: OwnedVolume) => Answer,
): Decision<Answer> {
  const { stored } = volume;
  const step = grown(call, verb, volume, sizeBytes);
  const room = roomFor(call, view, folderOf(volume, call.settings.cluster), sizeBytes - stored.sizeBytes);
  return {
    step: { ...step, room },
    next: (after) => {
      assertGrown(verb, stored.sizeBytes, after.stored, sizeBytes);
      return turnedOn(call, after) === undefined ? answer(after) : "again";
    },
  };
}

/** The volume, which is there with its own image. */
function existing(call: ControllerCall, view: View): OwnedVolume {
  assertNotForeign(view.foreign, "expand");
  if (view.volume === undefined) {
    assertVolumeGone(call, view.id, view);
    throw notFound("expand", view.id);
  }
  const volume = assertOwned(view.volume, call.settings.cluster, "expand");
  assertOwnImage(call, volume, "expand");
  assertImageShown(volume, view, "expand");
  return volume;
}

/**
 * Grows a disk for a call that has counted its room, and returns it as read back, in whatever size. One command.
 *
 * @throws {VolumeError} precondition when this router grows no disk that is exported; busy, unavailable
 */
export async function growVolume(
  call: ControllerCall,
  verb: string,
  first: View,
  sizeBytes: bigint,
): Promise<OwnedVolume> {
  const { id } = first;
  const rule = (view: View): Promise<Decision<OwnedVolume>> => {
    const volume = assertOwned(view.volume!, call.settings.cluster, verb);
    return Promise.resolve({ step: grown(call, verb, volume, sizeBytes), next: (after) => after });
  };
  return await changeByRule(call, { id, verb, first, read: () => readSlot(call, id) }, rule);
}

/** The disk is larger. @throws {VolumeError} precondition when this router does not do that */
export function grown(call: ControllerCall, verb: string, volume: OwnedVolume, sizeBytes: bigint): Step {
  const { stored } = volume;
  assertGrows(call, verb, stored.id, stored.exported && !mayToggle(call, volume));
  const step = growth(call, volume, sizeBytes);
  return step.kind === "toggle" ? { ...step, mend: () => turnOnAgain(call, stored.id) } : step;
}

/**
 * Turns an export on again that a failed toggle has left off, as the router may have refused the size behind the "off", and nodes
 * wait. What cannot be done now, the next expansion or the controller's reconcile loop does.
 */
async function turnOnAgain(call: ControllerCall, id: string): Promise<void> {
  const rule = (view: View) => {
    const step = turnedOn(call, existing(call, view));
    return Promise.resolve<Decision<object>>(
      step === undefined ? { answer: {} } : { step, next: (after) => after },
    );
  };
  try {
    await tidy(call, "mend", async (context) => {
      const own = { ...call, context };
      const read = () => readSlot(own, id);
      await changeByRule(own, { id, verb: "expand", first: await read(), read }, rule);
    });
  } catch (reason) {
    const fields = { volume: id, reason: String(reason) };
    call.notes.warn("an export could not be turned on again after a failed expansion", fields);
  }
}

export function assertGrown(verb: string, before: bigint, after: StoredVolume, wanted: bigint): StoredVolume {
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

/** An export is on again that an expansion has left off, because it was cut off in between; undefined for any other volume. */
function turnedOn(call: ControllerCall, volume: OwnedVolume): Step | undefined {
  const { stored, record } = volume;
  const wasOn = isHeldLayered(volume) &&
    isExportedAsRecorded({ ...volume, stored: { ...stored, exported: true } });
  if (stored.exported || call.settings.growth !== "after-toggle" || !wasOn) return undefined;
  assertNotUsedByRouter(stored, "expand");
  return exported(call, "continue", volume, { record: rewritten(record), port: stored.exportPort });
}

/** Whether nodes hold the volume, and each of them has the device layer below it: then its export may be toggled. */
function isHeldLayered({ record }: OwnedVolume): boolean {
  return record.layered === true && record.holders.length > 0;
}
