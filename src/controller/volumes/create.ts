import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import { assertRoom, diskBytes, getPool, overPromisedBytes } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { hasOwnLabel, imageLocationFor, locationOf, unfinishedCopies } from "../../volume/model/layout.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { poolOf } from "../../volume/model/ids.ts";
import type { CreateView, RouterState, VolumeView } from "../../volume/model/inventory.ts";
import { type NewVolume, sent } from "../../volume/ports/store.ts";
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
import { type AddedVolume, addUnseen, addVolume } from "./add.ts";
import { type CloneRequest, findCloneSource, planClone, type PlannedVolume } from "./clone.ts";
import { giveUpCopies } from "./copying.ts";
import { growVolume } from "./expand.ts";
import { assertImageShown, heldBytes, ownFilePrefix } from "../load.ts";
import { snapshotPart } from "../../volume/model/snapshots.ts";
import { outdateInDoubt } from "../change.ts";
import { commit } from "../records/commit.ts";
import { claimOf, reportingRefusal, spaceRefusal } from "../refusals.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Creates a volume, or finds the one that an earlier try made. One command while there is ample room, else two; two or three
 * from a source, and three more for a copy; one more each where room is scarce and for a clone that has to grow; two when
 * it exists.
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

async function create(call: ControllerCall, request: CreateRequest): Promise<OwnedVolume> {
  const plan = planVolume(request, call.settings.cluster, call.random);
  const { source } = request;
  const quickly = async () =>
    source === undefined
      ? await createWithinAmpleRoom(call, plan, request)
      : await cloneWithinAmpleRoom(call, plan, { ...request, source });
  // Where a new disk would harm others, only a read tells whether there is one already.
  const make = async () =>
    (call.settings.harmsOthers ? undefined : await quickly()) ?? await createByExactRead(call, plan, request);
  return await call.promised.afterFirst(make);
}

/** What exists goes on, and is found. @throws {VolumeError} precondition where a new disk would harm those who use others */
function assertHarmsNone({ settings: { harmsOthers } }: ControllerDeps, id: string): void {
  if (!harmsOthers) return;
  throw new VolumeError(
    "precondition",
    `Cannot create the volume because this router ends the sessions of nodes to other volumes when a disk is added: ` +
      `volume=${id}; existing volumes go on; rds-csi doctor with --router-profile says what to do`,
  );
}

/** Reads no other disk; undefined when only an exact read can tell whether there is room. */
async function createWithinAmpleRoom(
  call: ControllerCall,
  plan: VolumePlan,
  request: CreateRequest,
): Promise<OwnedVolume | undefined> {
  const { promised, settings, store } = call;
  if (!promised.expects(chooseSize(request.range), poolOf(plan.basePath))) return undefined;
  const made = await createUnseen(call, plan, request);
  if (made !== undefined) return made;
  const view = await store.view(plan.id, plan.filePrefix, call.context, plan.basePath);
  const created = findCreated(view, plan, request);
  if (created !== undefined) {
    await keepCreated(call, created, view, plan);
    return created;
  }
  assertAbsenceProven(view, [plan.basePath], settings.settleMs);
  const { volume, sizeBytes } = planBlank(call, view, plan, request);
  const pool = getPool(view, plan.basePath);
  if (sizeBytes > pool.freeBytes || !promised.isAmple(pool, sizeBytes)) return undefined;
  const add = () => addVolume(call, volume, "alone");
  return await promised.during(pool.mountPoint, sizeBytes, async () => await keepAdded(call, await add()));
}

/** The same for one that is made from a source: reads that, too. */
async function cloneWithinAmpleRoom(
  call: ControllerCall,
  plan: VolumePlan,
  request: CloneRequest,
): Promise<OwnedVolume | undefined> {
  const { promised, settings, store } = call;
  const { id, filePrefix, basePath } = plan;
  const { source, range } = request;
  if (!promised.expects(range.requiredBytes, poolOf(basePath))) return undefined;
  const from = source.kind === "volume" ? { id: source.id } : { part: snapshotPart(source.id) };
  const view = await store.sourceView({ id, filePrefix, folder: basePath }, from, call.context);
  const created = findCreated(view, plan, request);
  if (created !== undefined) {
    if (isUnfinishedClone(created, range)) return undefined;
    await keepCreated(call, created, view, plan);
    return created;
  }
  assertAbsenceProven(view, [basePath], settings.settleMs);
  const found = await findCloneSource(call, view, plan, request);
  const pool = getPool(view, basePath);
  if (found.sizeBytes > pool.freeBytes || !promised.isAmple(pool, found.sizeBytes)) return undefined;
  const planned = await planClone(call, view, plan, found);
  return await promised.during(pool.mountPoint, planned.sizeBytes, async () => {
    return await finishAdded(call, await addVolume(call, planned.volume, "alone"), planned.sizeBytes, range);
  });
}

/**
 * Reads nothing first: the command that adds the disk checks on the router. Undefined when the router has added none,
 * and a read has to show why.
 */
async function createUnseen(
  call: ControllerCall,
  plan: VolumePlan,
  request: CreateRequest,
): Promise<OwnedVolume | undefined> {
  const { basePath, filePrefix } = plan;
  const { promised, settings } = call;
  const pool = promised.amplePool(poolOf(basePath), chooseSize(request.range));
  if (pool === undefined || !hasOwnLabel(pool)) return undefined;
  const folder = { path: basePath, directory: true, sizeBytes: 0n };
  const { volume, sizeBytes } = planBlank(call, { pools: [pool], files: [folder] }, plan, request);
  const unseen = { filePrefix, folder: basePath, settleMs: settings.settleMs };
  const add = async () => {
    const outcome = await addUnseen(call, volume, unseen);
    return { ...outcome, created: outcome.added && await keepAdded(call, outcome.added) };
  };
  const { created } = await promised.during(
    pool.mountPoint,
    sizeBytes,
    add,
    (outcome) => outcome.mayStillApply ? "perhaps" : outcome.added !== undefined,
  );
  return created;
}

/** Calls that began meanwhile may have read everything before this disk was there. */
async function keepAdded(call: ControllerCall, added: AddedVolume): Promise<OwnedVolume> {
  const pool = getPool(added.after, added.volume.stored.imagePath);
  return call.promised.isAmple(pool) ? added.volume : await assertKept(call, added);
}

async function createByExactRead(
  call: ControllerCall,
  plan: VolumePlan,
  request: CreateRequest,
): Promise<OwnedVolume> {
  const { promised, settings, store } = call;
  const wanted = { id: plan.id, filePrefix: plan.filePrefix, folder: plan.basePath };
  const view = await promised.learnFrom(() => store.createView(wanted, call.context));
  const created = findCreated(slotOf(view, plan), plan, request);
  if (created !== undefined) return await finishCreated(call, created, view, plan, request);
  assertAbsenceProven(view, [plan.basePath], settings.settleMs);
  assertHarmsNone(call, plan.id);
  const planned = await planExactly(call, view, plan, request);
  return await promised.during(poolOf(plan.basePath), planned.sizeBytes, async () => {
    const added = await addVolume(call, planned.volume, "with-all");
    return await finishAdded(call, added, planned.sizeBytes, request.range, view);
  });
}

/** @throws {VolumeError} exhausted when there is no room for it */
async function planExactly(
  call: ControllerCall,
  view: CreateView,
  plan: VolumePlan,
  request: CreateRequest,
): Promise<PlannedVolume> {
  const { overcommit } = call.settings;
  const { source } = request;
  if (source === undefined) {
    assertNoImage(view, plan);
    assertRoom(view, plan.basePath, chooseSize(request.range), overcommit);
    return planBlank(call, view, plan, request);
  }
  const shown = { ...slotOf(view, plan), source: view.volumes.find(({ id }) => id === source.id) };
  const found = await findCloneSource(call, shown, plan, { ...request, source });
  assertRoom(view, plan.basePath, found.sizeBytes, overcommit, found.purpose.unfinished);
  return await planClone(call, shown, plan, found);
}

/** A blank volume, wherever there is room for it. */
function planBlank(
  deps: ControllerDeps,
  view: Pick<VolumeView, "pools" | "files">,
  plan: VolumePlan,
  request: CreateRequest,
): PlannedVolume {
  assertNoImage(view, plan);
  const sizeBytes = chooseSize(request.range);
  const pool = getPool(view, plan.basePath);
  const location = imageLocationFor(plan.basePath, plan.filePrefix, pool, deps.settings.subvolumeNames);
  const { subvolume } = location;
  // An earlier try may have made the subvolume and nothing in it.
  const made = view.files.some((file) =>
    file.directory && file.path === `${plan.basePath}/${plan.filePrefix}`
  );
  const volume: NewVolume = {
    id: plan.id,
    location,
    sizeBytes,
    comment: formatComment(newComment(plan.record)),
    ...missingFolder(view, plan.basePath, pool, deps.settings.subvolumeNames),
    ...(subvolume === undefined || made ? {} : { subvolume: { ...subvolume, readOnly: false } }),
  };
  return { volume, sizeBytes };
}

/** A removal that the router runs late would take away what is answered here; a clone may not have its size yet. */
async function finishCreated(
  call: ControllerCall,
  created: OwnedVolume,
  view: CreateView,
  plan: VolumePlan,
  { range }: CreateRequest,
): Promise<OwnedVolume> {
  if (!isUnfinishedClone(created, range)) {
    await keepCreated(call, created, view, plan);
    return created;
  }
  assertImageShown(created, view, "create");
  await giveUpOtherCopies(call, view, plan);
  const { stored } = created;
  const sizeBytes = chooseGrownSize(range, heldBytes(stored, view));
  assertRoom(view, stored.imagePath, sizeBytes - stored.sizeBytes, call.settings.overcommit);
  return await grownTo(call, created, sizeBytes);
}

/** A disk alone is no volume: that of a deleted one may be back, without its image. */
async function keepCreated(
  call: ControllerCall,
  created: OwnedVolume,
  view: Pick<VolumeView, "pools" | "upMs" | "files">,
  plan: VolumePlan,
): Promise<void> {
  assertImageShown(created, view, "create");
  call.memory.known.noteImage(created.stored, view);
  await giveUpOtherCopies(call, view, plan);
  await outdateInDoubt(call, "create", created);
}

/** Another controller was faster with its copy. */
async function giveUpOtherCopies(
  call: ControllerCall,
  { files }: Pick<VolumeView, "files">,
  { id, filePrefix }: VolumePlan,
): Promise<void> {
  await giveUpCopies(call, id, unfinishedCopies(files, filePrefix, call.settings.basePaths));
}

async function grownTo(call: ControllerCall, volume: OwnedVolume, sizeBytes: bigint): Promise<OwnedVolume> {
  if (volume.stored.sizeBytes >= sizeBytes) return volume;
  return await growVolume(call, "create", volume, sizeBytes);
}

/**
 * Two controllers, or two calls at once, may both have seen the same room: the one that finds none left removes its own
 * volume. It also removes a clone that the router does not grow, or whose source was expanded beyond the limit meanwhile,
 * because the clone has the wrong size and no caller would delete it. It removes only a volume that this call has made,
 * because any other may have been reported to a caller.
 */
async function finishAdded(
  call: ControllerCall,
  added: AddedVolume,
  sizeBytes: bigint,
  range: SizeRange,
  before?: CreateView,
): Promise<OwnedVolume> {
  const { volume, after } = added;
  await assertWithinLimit(call, added, range);
  await assertStillRoom(call, added, sizeBytes, before);
  try {
    return await grownTo(call, volume, sizeBytes);
  } catch (error) {
    if (!VolumeError.is(error, "precondition")) throw error;
    const view = await call.store.view(volume.stored.id, ownFilePrefix(call, volume.stored.id), call.context);
    if (view.volume !== undefined) {
      const left = assertOwned(view.volume, call.settings.cluster, "create");
      await takeBack(call, left, after, "the router does not grow it");
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
  { stored }: OwnedVolume,
  { pools }: RouterState,
  reason: string,
): Promise<void> {
  const { id, imagePath } = stored;
  const write = { id, remove: locationOf(imagePath, pools), filePrefix: ownFilePrefix(call, id) };
  const { after } = sent(await commit(call, stored, write));
  if (after.volume === undefined && !after.files.some((file) => file.path === imagePath)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot remove the volume again although ${reason}: volume=${id} path=${imagePath}`,
  );
}

/**
 * What was read back has every disk and no snapshot: where one of each volume, made meanwhile, would no longer fit,
 * everything is looked at again. Where nothing else was read, neither before nor after, that is so unless there is ample room.
 *
 * @param sizeBytes what the volume will have when it is done
 */
async function assertStillRoom(
  call: ControllerCall,
  added: AddedVolume,
  sizeBytes: bigint,
  before: CreateView | undefined,
): Promise<void> {
  const { volume, after, all } = added;
  const pool = getPool(after, volume.stored.imagePath);
  const growth = sizeBytes > volume.stored.sizeBytes ? sizeBytes - volume.stored.sizeBytes : 0n;
  if (before === undefined && volume.stored.sizeBytes <= sizeBytes && call.promised.isAmple(pool)) return;
  if (all !== undefined && before !== undefined) {
    const known = { volumes: all, files: before.files };
    const oneOfEach = growth + diskBytes(pool, known);
    if (overPromisedBytes(pool, known, call.settings.overcommit, oneOfEach) === 0n) return;
  }
  await assertKept(call, added, growth);
}

/** Reads everything, and takes the volume back when the pool has no room for it. */
async function assertKept(
  call: ControllerCall,
  { volume, after }: AddedVolume,
  growth = 0n,
): Promise<OwnedVolume> {
  const { promised, settings, store } = call;
  const { imagePath } = volume.stored;
  const shown = await promised.learnFrom(() => store.createView(undefined, call.context));
  const over = overPromisedBytes(getPool(after, imagePath), shown, settings.overcommit, growth);
  if (over === 0n) return volume;
  await takeBack(call, volume, after, `the pool has no room for it (${formatBytes(over)} too much)`);
  throw new VolumeError(
    "exhausted",
    `Cannot keep the volume because others took the room at the same time: path=${imagePath}, ${
      formatBytes(over)
    } too much`,
  );
}
