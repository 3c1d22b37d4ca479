import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import {
  assertRoom,
  diskBytes,
  getPool,
  overPromisedBytes,
  type Promises,
} from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { placeFor, placeOf, unfinishedCopies } from "../../volume/model/layout.ts";
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
import { planClone } from "./clone.ts";
import { discardFinished, giveUpCopies } from "./copying.ts";
import { growVolume } from "./expand.ts";
import { ownStem } from "../load.ts";
import { cutComment, isCut, outdateUnsettled, remembered } from "../change.ts";
import { claimOf, spaceRefusal, tellingRefusal } from "../refusals.ts";
import type { ControllerWorld } from "../deps.ts";

/**
 * Creates a volume, or finds the one that an earlier try made. Two commands, one more each where room is scarce, for a copy
 * and for a clone that has to grow; one when it exists.
 *
 * @throws {VolumeError} exists-incompatible, not-found (the source), exhausted, out-of-range, precondition, unavailable
 */
export async function createVolume(
  world: ControllerWorld,
  request: CreateRequest,
  context: CallContext,
): Promise<OwnedVolume> {
  const refusal = (error: VolumeError) => spaceRefusal(claimOf(request), error);
  return await tellingRefusal(world, refusal, () => create(world, request, context));
}

async function create(
  world: ControllerWorld,
  request: CreateRequest,
  context: CallContext,
): Promise<OwnedVolume> {
  const { settings, store } = world;
  const plan = planVolume(request, settings.cluster, world.random);
  const view = await store.createView({ id: plan.id, stem: plan.stem, folder: plan.basePath }, context);
  const created = findCreated(view, plan, request);
  if (created !== undefined) {
    // Another controller was faster with its copy.
    await giveUpCopies(world, plan.id, unfinishedCopies(view.files, plan.stem, settings.basePaths));
    return await finishCreated(world, created, view, request, context);
  }
  assertAbsenceProven(view, [plan.basePath], settings.settleMs);
  const { volume, sizeBytes } = request.source === undefined
    ? planBlank(world, view, plan, request)
    : await planClone(world, view, plan, { ...request, source: request.source }, context);
  const outcome = await addVolume(world, volume, context);
  await assertWholeComment(world, volume, outcome.after, context);
  const added = assertAdded(world, volume, outcome);
  await assertStillRoom(world, view, added, outcome.after, sizeBytes, context);
  return await growOrTakeBack(world, added, outcome.after, sizeBytes, context);
}

function planBlank(world: ControllerWorld, view: CreateView, plan: VolumePlan, request: CreateRequest) {
  assertNoImage(view, plan);
  const sizeBytes = chooseSize(request.range);
  const pool = getPool(view, plan.basePath);
  const place = placeFor(plan.basePath, plan.stem, pool, world.settings.subvolumeNames);
  assertRoom(view, plan.basePath, sizeBytes, world.settings.overcommit);
  const { subvolume } = place;
  // An earlier try may have made the subvolume and nothing in it.
  const made = view.files.some((file) => file.directory && file.path === `${plan.basePath}/${plan.stem}`);
  const volume: NewVolume = {
    id: plan.id,
    place,
    sizeBytes,
    comment: formatComment(newComment(plan.record), world.settings.maxCommentBytes),
    ...missingFolder(view, plan.basePath, pool, world.settings.subvolumeNames),
    ...(subvolume === undefined || made ? {} : { subvolume: { ...subvolume, readOnly: false } }),
  };
  return { volume, sizeBytes };
}

/** A removal that the router runs late would take away what is answered here; a clone may not have its size yet. */
async function finishCreated(
  world: ControllerWorld,
  created: OwnedVolume,
  view: CreateView,
  request: CreateRequest,
  context: CallContext,
): Promise<OwnedVolume> {
  const { range } = request;
  if (!isUnfinishedClone(created, range)) {
    await outdateUnsettled(world, "create", created, context);
    return created;
  }
  const { stored } = created;
  const sizeBytes = chooseGrownSize(range, stored.sizeBytes);
  assertRoom(view, stored.imagePath, sizeBytes - stored.sizeBytes, world.settings.overcommit);
  return await grownTo(world, created, sizeBytes, context);
}

async function grownTo(
  world: ControllerWorld,
  volume: OwnedVolume,
  sizeBytes: bigint,
  context: CallContext,
): Promise<OwnedVolume> {
  if (volume.stored.sizeBytes >= sizeBytes) return volume;
  const stored = await growVolume(world, "create", volume, sizeBytes, context);
  return assertOwned(stored, world.settings.cluster, "create");
}

/**
 * A clone that the router does not grow would never be what was asked for, and nobody would delete it: it goes again.
 * Only one that this call has made: of any other one somebody may have been told.
 */
async function growOrTakeBack(
  world: ControllerWorld,
  volume: OwnedVolume,
  state: RouterState,
  sizeBytes: bigint,
  context: CallContext,
): Promise<OwnedVolume> {
  try {
    return await grownTo(world, volume, sizeBytes, context);
  } catch (error) {
    if (!VolumeError.is(error, "precondition")) throw error;
    const view = await world.store.view(volume.stored.id, ownStem(world, volume.stored.id), context);
    if (view.volume !== undefined) {
      const left = assertOwned(view.volume, world.settings.cluster, "create");
      await takeBack(world, left, state, "the router does not grow it", context);
    }
    throw error;
  }
}

/** Removes a volume that was made a moment ago and that nobody was told of. */
async function takeBack(
  world: ControllerWorld,
  { stored }: OwnedVolume,
  { pools }: RouterState,
  reason: string,
  context: CallContext,
): Promise<void> {
  const { id, comment, imagePath } = stored;
  const place = placeOf(imagePath, pools);
  const send = () => world.store.remove({ id, comment }, place, ownStem(world, id), context);
  const { after } = await remembered(world, stored, send);
  if (after.volume === undefined && !after.files.some((file) => file.path === imagePath)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot take the volume back though ${reason}: volume=${id} path=${imagePath}`,
  );
}

/** Of a copy whose disk was not added nobody could tell later what it is a copy of. */
async function addVolume(
  world: ControllerWorld,
  volume: NewVolume,
  context: CallContext,
): Promise<MutationOutcome<Inventory>> {
  const { id, place, copied } = volume;
  let added = false;
  try {
    const outcome = await world.store.add(volume, context);
    added = outcome.after.volumes.some((stored) => stored.id === id && stored.comment === volume.comment);
    return outcome;
  } finally {
    if (!added && copied !== undefined) await discardFinished(world, copied, place);
  }
}

function assertAdded(
  world: ControllerWorld,
  plan: NewVolume,
  outcome: MutationOutcome<Inventory>,
): OwnedVolume {
  const stored = outcome.after.volumes.find((volume) => volume.id === plan.id);
  if (stored === undefined) {
    const parent = plan.subvolume?.parent?.path.split("/").at(-1);
    const hint = parent === undefined
      ? ""
      : ` (no other subvolume may be called ${parent}, nor its volume change meanwhile)`;
    const reason = outcome.refusal === undefined
      ? `the router did not do it${hint}`
      : `the router answered ${JSON.stringify(outcome.refusal.slice(0, 200))}`;
    throw new VolumeError("unavailable", `Cannot create the volume as ${reason}: volume=${plan.id}`);
  }
  const volume = assertOwned(stored, world.settings.cluster, "create");
  const asPlanned = stored.comment === plan.comment && stored.imagePath === plan.place.path &&
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
  world: ControllerWorld,
  { id, place, comment }: NewVolume,
  after: Inventory,
  context: CallContext,
): Promise<void> {
  const stored = after.volumes.find((volume) => volume.id === id);
  if (stored === undefined || stored.imagePath !== place.path || !isCut(stored.comment, comment)) return;
  await world.store.remove({ id, comment: stored.comment }, place, ownStem(world, id), context);
  throw cutComment("create", id, stored.comment.length);
}

/**
 * Two controllers, or two calls at once, may both have seen the same room: whoever finds none left takes its own back.
 * What was read back has every disk and no snapshot: where one of each volume, made meanwhile, would no longer fit,
 * everything is looked at again.
 *
 * @param sizeBytes what the volume will have when it is done
 */
async function assertStillRoom(
  world: ControllerWorld,
  before: CreateView,
  volume: OwnedVolume,
  after: Inventory,
  sizeBytes: bigint,
  context: CallContext,
): Promise<void> {
  const { imagePath } = volume.stored;
  const pool = getPool(after, imagePath);
  const growth = sizeBytes > volume.stored.sizeBytes ? sizeBytes - volume.stored.sizeBytes : 0n;
  const overBytes = (promises: Promises, moreBytes: bigint) =>
    overPromisedBytes(pool, promises, world.settings.overcommit, moreBytes);
  const known = { volumes: after.volumes, files: before.files };
  const oneOfEach = overBytes(known, growth + diskBytes(pool, after));
  const shown = oneOfEach === 0n ? known : await world.store.createView(undefined, context);
  const over = overBytes(shown, growth);
  if (over === 0n) return;
  await takeBack(world, volume, after, `the pool has no room for it (over=${over})`, context);
  throw new VolumeError(
    "exhausted",
    `Cannot keep the volume as others took the room at the same time: path=${imagePath} over=${over}`,
  );
}
