import type { ClaimRef } from "../../volume/ports/controller_events.ts";
import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import { diskBytes, getPool, overPromisedBytes } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { hasOwnLabel, imageLocationFor, locationOf, unfinishedCopies } from "../../volume/model/layout.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import type { RouterState } from "../../volume/model/inventory.ts";
import type { NewVolume } from "../../volume/ports/store.ts";
import {
  assertNoImage,
  type CreateRequest,
  findCreated,
  isUnfinishedClone,
  missingFolder,
  planVolume,
  slotOf,
  type VolumePlan,
} from "../../volume/rules/provision.ts";
import { formatComment, newComment, type OwnedVolume } from "../../volume/model/record.ts";
import {
  chooseCloneSize,
  chooseGrownSize,
  chooseSize,
  formatBytes,
  type SizeRange,
} from "../../volume/model/sizes.ts";
import { type CloneRequest, discardUnmarked, findCloneSource, planClone } from "./clone.ts";
import { discardFinished, giveUpCopies } from "./copying.ts";
import { assertGrown, grownTo, growVolume } from "./expand.ts";
import { roomFor } from "./room.ts";
import { assertImageShown, heldBytes } from "../load.ts";
import { snapshotPart } from "../../volume/model/snapshots/snapshots.ts";
import { type AddedVolume, adding } from "../records/add.ts";
import { changeByRule, type Decision, type Level } from "../records/loop.ts";
import { removing } from "../records/remove.ts";
import { assumedView, readSlot, type View } from "../records/view.ts";
import { reportingRefusal, spaceRefusal } from "../refusals.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Creates a volume, or finds the one that an earlier try made. One command while there is ample room, else two; two or three
 * from a source, and three more for a copy; one more each where room is scarce and for a clone that has to grow; one or
 * two when it exists.
 *
 * @throws {VolumeError} exists-incompatible, not-found (the source), exhausted, out-of-range, precondition, unavailable
 */
export async function createVolume(
  deps: ControllerDeps,
  request: CreateRequest,
  context: CallContext,
): Promise<OwnedVolume> {
  const call = { ...deps, context };
  const refusal = (error: VolumeError) => spaceRefusal(claimOf(request), error);
  return await reportingRefusal(deps, refusal, () => create(call, request));
}

/** What came of it. */
interface Created {
  readonly volume: OwnedVolume;
  /** Paths of copies that nobody needs where it was there already: another controller was faster with its own. */
  readonly unneeded?: readonly string[];
}

async function create(call: ControllerCall, request: CreateRequest): Promise<OwnedVolume> {
  const plan = planVolume(request, call.settings.cluster, call.random);
  const { id } = plan;
  const first = assumedView(call, id) ?? unseenView(call, plan, request);
  const read = (level: Level) => readToCreate(call, plan, request, level);
  const rule = (view: View) => decideCreating(call, view, plan, request);
  return await call.promised.afterFirst(async () => {
    const { volume, unneeded } = await changeByRule(call, { id, verb: "create", first, read }, rule);
    if (unneeded !== undefined) await giveUpCopies(call, id, unneeded);
    return volume;
  });
}

/** That there is nothing of a blank volume yet, where there is ample room for it: the router is asked when it is added. */
function unseenView(
  { promised, settings }: ControllerCall,
  { id, basePath }: VolumePlan,
  { source, range }: CreateRequest,
): View | undefined {
  // Where a new disk would harm others, only a read tells whether there is one already.
  if (source !== undefined || settings.harmsOthers) return undefined;
  const pool = promised.amplePool(poolOf(basePath), chooseSize(range));
  if (pool === undefined || !hasOwnLabel(pool)) return undefined;
  const folder = { path: basePath, directory: true, sizeBytes: 0n };
  const claimed = { volume: undefined, foreign: undefined, sharers: [], files: [folder], upMs: Infinity };
  return { id, isAssumed: true, pools: [pool], ...claimed };
}

/** Reads no other disk than the source's where there is ample room, else every disk. One command. */
async function readToCreate(
  { promised, settings, store, context }: ControllerCall,
  { id, filePrefix, basePath: folder }: VolumePlan,
  { source, range }: CreateRequest,
  level: Level,
): Promise<View> {
  const wanted = { id, filePrefix, folder };
  const bytes = source === undefined ? chooseSize(range) : range.requiredBytes;
  if (level === "all" || settings.harmsOthers || !promised.expects(bytes, poolOf(folder))) {
    const view = await promised.learnFrom(() => store.createView(wanted, context));
    const { volumes: all } = view;
    const from = all.find((one) => one.id === source?.id);
    return { ...slotOf(view, { id }), id, isAssumed: false, all, source: from };
  }
  if (source === undefined) {
    return { ...await store.view(id, filePrefix, context, folder), id, isAssumed: false };
  }
  const from = source.kind === "volume" ? { id: source.id } : { part: snapshotPart(source.id) };
  return { ...await store.sourceView(wanted, from, context), id, isAssumed: false };
}

/** Decides by what is known of the slot, the image and the source. What is there goes on, and is found. */
async function decideCreating(
  call: ControllerCall,
  view: View,
  plan: VolumePlan,
  request: CreateRequest,
): Promise<Decision<Created>> {
  const created = findCreated(view, plan, request);
  if (created !== undefined) return keeping(call, view, created, plan, request);
  assertAbsenceProven(view, [plan.basePath], call.settings.settleMs);
  assertHarmsNone(call, plan.id);
  const { source } = request;
  return source === undefined
    ? makingBlank(call, view, plan, request)
    : await cloning(call, view, plan, { ...request, source });
}

/** @throws {VolumeError} precondition where a new disk would harm those who use others */
function assertHarmsNone({ settings: { harmsOthers } }: ControllerDeps, id: string): void {
  if (!harmsOthers) return;
  throw new VolumeError(
    "precondition",
    `Cannot create the volume because this router ends the sessions of nodes to other volumes when a disk is added: ` +
      `volume=${id}; existing volumes go on; rds-csi doctor with --router-profile says what to do`,
  );
}

/** A disk alone is no volume: that of a deleted one may be back, without its image. A clone may not have its size yet. */
function keeping(
  call: ControllerCall,
  view: View,
  created: OwnedVolume,
  { filePrefix }: VolumePlan,
  { range }: CreateRequest,
): Decision<Created> {
  assertImageShown(created, view, "create");
  const unneeded = unfinishedCopies(view.files, filePrefix, call.settings.basePaths);
  if (!isUnfinishedClone(created, range)) {
    return { answer: { volume: created, unneeded }, stands: created };
  }
  const sizeBytes = chooseGrownSize(range, heldBytes(created.stored, view));
  const wanted = { volume: created, sizeBytes };
  return grownTo(call, "create", view, wanted, (volume) => ({ volume, unneeded }));
}

function makingBlank(
  call: ControllerCall,
  view: View,
  plan: VolumePlan,
  { range }: CreateRequest,
): Decision<Created> {
  assertNoImage(view, plan);
  const sizeBytes = chooseSize(range);
  const room = roomFor(call, view, plan.basePath, sizeBytes);
  const addition = { volume: planBlank(call, view, plan, sizeBytes), room };
  return adding(addition, (added) => finishAdded(call, added, { view, sizeBytes, range }));
}

async function cloning(
  call: ControllerCall,
  view: View,
  plan: VolumePlan,
  request: CloneRequest,
): Promise<Decision<Created>> {
  const shown = { ...view, source: view.source };
  const source = await findCloneSource(call, shown, plan, request);
  const { sizeBytes, purpose } = source;
  const room = roomFor(call, view, plan.basePath, sizeBytes, purpose.unfinished);
  // Before anything is copied.
  if (room.isAmple?.(sizeBytes) === false) return { need: "all" };
  const volume = await planClone(call, shown, plan, source);
  const { id, location, copied, subvolume } = volume;
  // Without its disk, nothing shows later what a copy is a copy of. Nothing shows either that a clone was never used, once the
  // router has taken the clone's mark and then refused the disk.
  const mend = async (isRefused: boolean) => {
    if (copied !== undefined) await discardFinished(call, copied, location);
    if (isRefused && subvolume?.parent !== undefined) await discardUnmarked(call, id, location);
  };
  const { range } = request;
  return adding({ volume, room, mend }, (added) => finishAdded(call, added, { view, sizeBytes, range }));
}

/** A blank volume. */
function planBlank(deps: ControllerDeps, view: View, plan: VolumePlan, sizeBytes: bigint): NewVolume {
  const pool = getPool(view, plan.basePath);
  const location = imageLocationFor(plan.basePath, plan.filePrefix, pool, deps.settings.subvolumeNames);
  const { subvolume } = location;
  // An earlier try may have made the subvolume and nothing in it.
  const made = view.files.some((file) =>
    file.directory && file.path === `${plan.basePath}/${plan.filePrefix}`
  );
  return {
    id: plan.id,
    location,
    sizeBytes,
    comment: formatComment(newComment(plan.record)),
    ...missingFolder(view, plan.basePath, pool, deps.settings.subvolumeNames),
    ...(subvolume === undefined || made ? {} : { subvolume: { ...subvolume, readOnly: false } }),
  };
}

/** What an added volume is to be, and by what that was decided. */
interface WantedSize {
  readonly view: View;
  /** What it will have when it is done. */
  readonly sizeBytes: bigint;
  readonly range: SizeRange;
}

/**
 * Two controllers, or two calls at once, may both have seen the same room: the one that finds none left removes its own
 * volume. It also removes a clone that the router does not grow, or whose source was expanded beyond the limit meanwhile,
 * because the clone has the wrong size and no caller would delete it. It removes only a volume that this call has made,
 * because any other may have been reported to a caller.
 */
async function finishAdded(call: ControllerCall, added: AddedVolume, wanted: WantedSize): Promise<Created> {
  const { volume, after } = added;
  const { sizeBytes } = wanted;
  await assertWithinLimit(call, added, wanted.range);
  await assertStillRoom(call, added, wanted);
  if (volume.stored.sizeBytes >= sizeBytes) return { volume };
  let last = volume;
  const made: View = { ...wanted.view, ...after, isAssumed: false, volume: volume.stored };
  try {
    last = await growVolume(call, "create", made, sizeBytes);
    assertGrown("create", volume.stored.sizeBytes, last.stored, sizeBytes);
    return { volume: last };
  } catch (error) {
    // By what this call has read back: whoever has changed it since may have told somebody of it.
    if (VolumeError.is(error, "precondition")) {
      await takeBack(call, last, after, "the router does not grow it");
    }
    throw error;
  }
}

/** Takes a clone back that is as large as its source has become meanwhile, and too large. */
async function assertWithinLimit(
  call: ControllerCall,
  { volume, after }: AddedVolume,
  range: SizeRange,
): Promise<void> {
  try {
    chooseCloneSize(range, volume.stored.sizeBytes);
  } catch (error) {
    await takeBack(call, volume, after, "it is larger than the limit");
    throw error;
  }
}

/** Removes a volume that was made a moment ago and has not been reported to any caller. */
async function takeBack(
  call: ControllerCall,
  volume: OwnedVolume,
  state: RouterState,
  reason: string,
): Promise<void> {
  const { id, imagePath } = volume.stored;
  const otherwise = new VolumeError(
    "unavailable",
    `Cannot remove the volume again although ${reason}: volume=${id} path=${imagePath}`,
  );
  const removal = { volume, location: locationOf(imagePath, state.pools), otherwise };
  const nothing = { foreign: undefined, sharers: [], files: [] };
  const first: View = { ...state, ...nothing, id, isAssumed: false, volume: volume.stored };
  const about = { id, verb: "create", first, read: () => readSlot(call, id) };
  const left = await changeByRule(call, about, () => Promise.resolve(removing(removal, (left) => left)));
  if (left.files.some((file) => file.path === imagePath)) throw otherwise;
}

/**
 * What was read back has every disk and no snapshot: where one of each volume, made meanwhile, would no longer fit,
 * everything is looked at again. Where nothing else was read, neither before nor after, that is so unless there is ample room:
 * calls that began meanwhile may have read everything before this disk was there.
 */
async function assertStillRoom(
  call: ControllerCall,
  added: AddedVolume,
  { view, sizeBytes }: WantedSize,
): Promise<void> {
  const { volume, after, all } = added;
  const pool = getPool(after, volume.stored.imagePath);
  const growth = sizeBytes > volume.stored.sizeBytes ? sizeBytes - volume.stored.sizeBytes : 0n;
  const hasReadAll = view.all !== undefined;
  if (!hasReadAll && volume.stored.sizeBytes <= sizeBytes && call.promised.isAmple(pool)) return;
  if (hasReadAll && all !== undefined) {
    const known = { volumes: all, files: view.files };
    const oneOfEach = growth + diskBytes(pool, known);
    if (overPromisedBytes(pool, known, call.settings.overcommit, oneOfEach) === 0n) return;
  }
  await assertKept(call, added, growth);
}

/** Reads everything, and takes the volume back when the pool has no room for it. */
async function assertKept(
  call: ControllerCall,
  { volume, after }: AddedVolume,
  growth: bigint,
): Promise<void> {
  const { promised, settings, store } = call;
  const { imagePath } = volume.stored;
  const shown = await promised.learnFrom(() => store.createView(undefined, call.context));
  const over = overPromisedBytes(getPool(after, imagePath), shown, settings.overcommit, growth);
  if (over === 0n) return;
  await takeBack(call, volume, after, `the pool has no room for it (${formatBytes(over)} too much)`);
  throw new VolumeError(
    "exhausted",
    "Cannot keep the volume because others took the room at the same time: " +
      `path=${imagePath}, ${formatBytes(over)} too much`,
  );
}

/** The claim that a volume is made for, where the provisioner names it (`--extra-create-metadata`). */
function claimOf({ name, rawParameters }: CreateRequest): ClaimRef | undefined {
  const claim = rawParameters["csi.storage.k8s.io/pvc/name"];
  const namespace = rawParameters["csi.storage.k8s.io/pvc/namespace"];
  // The provisioner names a volume after the uid of its claim.
  const uid = /^pvc-([0-9a-f-]{36})$/.exec(name)?.[1];
  return claim && namespace && uid ? { name: claim, namespace, uid } : undefined;
}
