import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import { assertRoom, diskBytes, getPool, overPromisedBytes } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { imageLocationFor, locationOf, unfinishedCopies } from "../../volume/model/layout.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { poolOf } from "../../volume/model/ids.ts";
import type { CreateView, RouterState, StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
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
import { chooseGrownSize, chooseSize } from "../../volume/model/sizes.ts";
import { planClone, type PlannedVolume } from "./clone.ts";
import { discardFinished, giveUpCopies } from "./copying.ts";
import { growVolume } from "./expand.ts";
import { ownFilePrefix } from "../load.ts";
import { cutComment, isCut, outdateInDoubt, remembered, whyNotDone } from "../change.ts";
import { claimOf, reportingRefusal, spaceRefusal } from "../refusals.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Creates a volume, or finds the one that an earlier try made. Two commands, one more each where room is scarce, for a copy
 * and for a clone that has to grow; one when it exists.
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
  return await createWithinAmpleRoom(call, plan, request) ?? await createByExactRead(call, plan, request);
}

/** Reads no other disk; undefined when only an exact read can tell whether there is room. */
async function createWithinAmpleRoom(
  call: ControllerCall,
  plan: VolumePlan,
  request: CreateRequest,
): Promise<OwnedVolume | undefined> {
  const { promised, settings, store } = call;
  if (request.source !== undefined) return undefined;
  if (!promised.expects(chooseSize(request.range), poolOf(plan.basePath))) return undefined;
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
  return await promised.during(pool.mountPoint, sizeBytes, async () => {
    const added = await addVolume(call, volume, "alone");
    // Calls that began meanwhile may have read everything before this disk was there.
    return promised.isAmple(pool) ? added.volume : await assertKept(call, added);
  });
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
  if (request.source === undefined) {
    assertNoImage(view, plan);
    assertRoom(view, plan.basePath, chooseSize(request.range), settings.overcommit);
  }
  const planned = request.source === undefined
    ? planBlank(call, view, plan, request)
    : await planClone(call, view, plan, { ...request, source: request.source });
  return await promised.during(poolOf(plan.basePath), planned.sizeBytes, async () => {
    const added = await addVolume(call, planned.volume, "with-all");
    return await finishAdded(call, added, view, planned.sizeBytes);
  });
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
    comment: formatComment(newComment(plan.record), deps.settings.maxCommentBytes),
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
  await giveUpOtherCopies(call, view, plan);
  const { stored } = created;
  const sizeBytes = chooseGrownSize(range, stored.sizeBytes);
  assertRoom(view, stored.imagePath, sizeBytes - stored.sizeBytes, call.settings.overcommit);
  return await grownTo(call, created, sizeBytes);
}

async function keepCreated(
  call: ControllerCall,
  created: OwnedVolume,
  view: Pick<VolumeView, "files">,
  plan: VolumePlan,
): Promise<void> {
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

/** A volume that this call has added, and what was read back with it. */
interface AddedVolume {
  readonly volume: OwnedVolume;
  readonly after: RouterState;
  /** Every disk; undefined when only its own was read back. */
  readonly all: readonly StoredVolume[] | undefined;
}

/**
 * Two controllers, or two calls at once, may both have seen the same room: whoever finds none left takes its own back.
 * A clone that the router does not grow would never be what was asked for, and nobody would delete it: it goes again.
 * Only one that this call has made: of any other one somebody may have been told.
 */
async function finishAdded(
  call: ControllerCall,
  added: AddedVolume,
  before: CreateView,
  sizeBytes: bigint,
): Promise<OwnedVolume> {
  const { volume, after } = added;
  await assertStillRoom(call, before, added, sizeBytes);
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

/** Removes a volume that was made a moment ago and that nobody was told of. */
async function takeBack(
  call: ControllerCall,
  { stored }: OwnedVolume,
  { pools }: RouterState,
  reason: string,
): Promise<void> {
  const { id, comment, imagePath } = stored;
  const location = locationOf(imagePath, pools);
  const send = () => call.store.remove({ id, comment }, location, ownFilePrefix(call, id), call.context);
  const { after } = await remembered(call, stored, send);
  if (after.volume === undefined && !after.files.some((file) => file.path === imagePath)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot take the volume back though ${reason}: volume=${id} path=${imagePath}`,
  );
}

/** Of a copy whose disk was not added nobody could tell later what it is a copy of. */
async function addVolume(
  call: ControllerCall,
  wanted: NewVolume,
  readBack: "with-all" | "alone",
): Promise<AddedVolume> {
  const { location, copied, comment } = wanted;
  let added = false;
  let outcome: AddOutcome;
  try {
    outcome = readBack === "alone" ? await addAlone(call, wanted) : await addWithAll(call, wanted);
    added = outcome.stored?.comment === comment;
  } finally {
    if (!added && copied !== undefined) await discardFinished(call, copied, location);
  }
  await assertWholeComment(call, wanted, outcome.stored);
  return { volume: assertAdded(call, wanted, outcome), after: outcome.after, all: outcome.all };
}

/** What was read back after adding a disk. */
interface AddOutcome extends Omit<AddedVolume, "volume"> {
  readonly stored: StoredVolume | undefined;
  readonly refusal: string | undefined;
}

async function addWithAll(call: ControllerCall, wanted: NewVolume): Promise<AddOutcome> {
  const { after, refusal } = await call.store.add(wanted, call.context);
  return { stored: after.volumes.find(({ id }) => id === wanted.id), after, all: after.volumes, refusal };
}

async function addAlone(call: ControllerCall, wanted: NewVolume): Promise<AddOutcome> {
  const { after, refusal } = await call.store.addAlone(wanted, call.context);
  return { stored: after.volume, after, all: undefined, refusal };
}

function assertAdded(
  deps: ControllerDeps,
  plan: NewVolume,
  { stored, refusal }: AddOutcome,
): OwnedVolume {
  if (stored === undefined) {
    const parent = plan.subvolume?.parent?.path.split("/").at(-1);
    const hint = parent === undefined
      ? ""
      : ` (no other subvolume may be called ${parent}, nor its volume change meanwhile)`;
    const reason = whyNotDone(refusal, hint);
    throw new VolumeError("unavailable", `Cannot create the volume as ${reason}: volume=${plan.id}`);
  }
  const volume = assertOwned(stored, deps.settings.cluster, "create");
  const asPlanned = stored.comment === plan.comment && stored.imagePath === plan.location.path &&
    (plan.sizeBytes === undefined || stored.sizeBytes === plan.sizeBytes) && !stored.exported;
  if (asPlanned) return volume;
  throw new VolumeError(
    "busy",
    `Cannot create the volume as the router shows another one than was added: volume=${plan.id} ` +
      `size=${stored.sizeBytes} path=${stored.imagePath}; try again`,
  );
}

/** A disk whose record was cut would be nobody's: it is taken back, with its image. */
async function assertWholeComment(
  call: ControllerCall,
  { id, location, comment }: NewVolume,
  stored: StoredVolume | undefined,
): Promise<void> {
  if (stored === undefined || stored.imagePath !== location.path || !isCut(stored.comment, comment)) return;
  await call.store.remove({ id, comment: stored.comment }, location, ownFilePrefix(call, id), call.context);
  throw cutComment("create", id, stored.comment.length);
}

/**
 * What was read back has every disk and no snapshot: where one of each volume, made meanwhile, would no longer fit,
 * everything is looked at again.
 *
 * @param sizeBytes what the volume will have when it is done
 */
async function assertStillRoom(
  call: ControllerCall,
  before: CreateView,
  added: AddedVolume,
  sizeBytes: bigint,
): Promise<void> {
  const { volume, after, all } = added;
  const pool = getPool(after, volume.stored.imagePath);
  const growth = sizeBytes > volume.stored.sizeBytes ? sizeBytes - volume.stored.sizeBytes : 0n;
  if (all !== undefined) {
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
  await takeBack(call, volume, after, `the pool has no room for it (over=${over})`);
  throw new VolumeError(
    "exhausted",
    `Cannot keep the volume as others took the room at the same time: path=${imagePath} over=${over}`,
  );
}
