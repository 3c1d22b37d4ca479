import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import {
  assertRoom,
  diskBytes,
  getPool,
  overPromisedBytes,
  type Promises,
} from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { imageLocationFor, locationOf, unfinishedCopies } from "../../volume/model/layout.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { CreateView, Inventory, RouterState } from "../../volume/model/inventory.ts";
import type { MutationOutcome, NewVolume } from "../../volume/ports/store.ts";
import {
  assertNoImage,
  type CreateRequest,
  findCreated,
  isUnfinishedClone,
  missingFolder,
  planVolume,
  type VolumePlan,
} from "../../volume/rules/provision.ts";
import { formatComment, newComment, type OwnedVolume } from "../../volume/model/record.ts";
import { chooseGrownSize, chooseSize } from "../../volume/model/sizes.ts";
import { discardUnmarked, planClone, type PlannedVolume } from "./clone.ts";
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
  const { settings, store } = call;
  const plan = planVolume(request, settings.cluster, call.random);
  const view = await store.createView(
    { id: plan.id, filePrefix: plan.filePrefix, folder: plan.basePath },
    call.context,
  );
  const created = findCreated(view, plan, request);
  if (created !== undefined) return await finishCreated(call, created, view, plan, request);
  assertAbsenceProven(view, [plan.basePath], settings.settleMs);
  const planned = request.source === undefined
    ? planBlank(call, view, plan, request)
    : await planClone(call, view, plan, { ...request, source: request.source });
  const added = await addVolume(call, planned.volume);
  return await finishAdded(call, added, view, planned.sizeBytes);
}

function planBlank(
  deps: ControllerDeps,
  view: CreateView,
  plan: VolumePlan,
  request: CreateRequest,
): PlannedVolume {
  assertNoImage(view, plan);
  const sizeBytes = chooseSize(request.range);
  const pool = getPool(view, plan.basePath);
  const location = imageLocationFor(plan.basePath, plan.filePrefix, pool, deps.settings.subvolumeNames);
  assertRoom(view, plan.basePath, sizeBytes, deps.settings.overcommit);
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
  // Another controller was faster with its copy.
  await giveUpCopies(call, plan.id, unfinishedCopies(view.files, plan.filePrefix, call.settings.basePaths));
  if (!isUnfinishedClone(created, range)) {
    await outdateInDoubt(call, "create", created);
    return created;
  }
  const { stored } = created;
  const sizeBytes = chooseGrownSize(range, stored.sizeBytes);
  assertRoom(view, stored.imagePath, sizeBytes - stored.sizeBytes, call.settings.overcommit);
  return await grownTo(call, created, sizeBytes);
}

async function grownTo(call: ControllerCall, volume: OwnedVolume, sizeBytes: bigint): Promise<OwnedVolume> {
  if (volume.stored.sizeBytes >= sizeBytes) return volume;
  return await growVolume(call, "create", volume, sizeBytes);
}

/** A volume that this call has added, and everything that was read back with it. */
interface AddedVolume {
  readonly volume: OwnedVolume;
  readonly after: Inventory;
}

/**
 * Two controllers, or two calls at once, may both have seen the same room: whoever finds none left takes its own back.
 * A clone that the router does not grow would never be what was asked for, and nobody would delete it: it goes again.
 * Only one that this call has made: of any other one somebody may have been told.
 */
async function finishAdded(
  call: ControllerCall,
  { volume, after }: AddedVolume,
  before: CreateView,
  sizeBytes: bigint,
): Promise<OwnedVolume> {
  await assertStillRoom(call, before, { volume, after }, sizeBytes);
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

/**
 * Of a copy whose disk was not added nobody could tell later what it is a copy of; nor of a clone that it was never used,
 * where the router refused the disk after it had taken the clone's mark.
 */
async function addVolume(call: ControllerCall, wanted: NewVolume): Promise<AddedVolume> {
  const { id, location, copied, comment, subvolume } = wanted;
  let added = false;
  let outcome: MutationOutcome<Inventory>;
  try {
    outcome = await call.store.add(wanted, call.context);
    added = outcome.after.volumes.some((stored) => stored.id === id && stored.comment === comment);
    if (added) call.inDoubt.wrote(id, comment);
  } finally {
    if (!added && copied !== undefined) await discardFinished(call, copied, location);
  }
  const isRefused = !added && outcome.refusal !== undefined;
  if (isRefused && subvolume?.parent !== undefined) await discardUnmarked(call, id, location);
  await assertWholeComment(call, wanted, outcome.after);
  return { volume: assertAdded(call, wanted, outcome), after: outcome.after };
}

function assertAdded(
  deps: ControllerDeps,
  plan: NewVolume,
  outcome: MutationOutcome<Inventory>,
): OwnedVolume {
  const stored = outcome.after.volumes.find((volume) => volume.id === plan.id);
  if (stored === undefined) {
    const parent = plan.subvolume?.parent?.path.split("/").at(-1);
    const hint = parent === undefined
      ? ""
      : ` (no other subvolume may be called ${parent}, nor its volume change meanwhile)`;
    const reason = whyNotDone(outcome.refusal, hint);
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
  after: Inventory,
): Promise<void> {
  const stored = after.volumes.find((volume) => volume.id === id);
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
  { volume, after }: AddedVolume,
  sizeBytes: bigint,
): Promise<void> {
  const { imagePath } = volume.stored;
  const pool = getPool(after, imagePath);
  const growth = sizeBytes > volume.stored.sizeBytes ? sizeBytes - volume.stored.sizeBytes : 0n;
  const overBytes = (promises: Promises, moreBytes: bigint) =>
    overPromisedBytes(pool, promises, call.settings.overcommit, moreBytes);
  const known = { volumes: after.volumes, files: before.files };
  const oneOfEach = overBytes(known, growth + diskBytes(pool, after));
  const shown = oneOfEach === 0n ? known : await call.store.createView(undefined, call.context);
  const over = overBytes(shown, growth);
  if (over === 0n) return;
  await takeBack(call, volume, after, `the pool has no room for it (over=${over})`);
  throw new VolumeError(
    "exhausted",
    `Cannot keep the volume as others took the room at the same time: path=${imagePath} over=${over}`,
  );
}
