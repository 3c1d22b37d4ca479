import { assertGone } from "../../volume/rules/absence.ts";
import { assertRoom, getPool, overPromisedBytes } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { placeOf, plainPlace, stemOf, subvolumePlace } from "../../volume/model/layout.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import type {
  CallContext,
  CreateView,
  FileView,
  ImagePlace,
  MutationOutcome,
  SubvolumeRef,
} from "../../volume/ports/ports.ts";
import {
  assertSameSource,
  formatSnapshotName,
  ownSnapshots,
  parseSnapshots,
  type SnapshotName,
  snapshotPart,
  type StoredSnapshot,
  unfinishedSnapshots,
} from "../../volume/model/snapshots.ts";
import { snapshotIdFor } from "../../volume/model/ids.ts";
import { blankGuard, type FoundVolume, sourceOf } from "../volumes/clone.ts";
import { copyImage, type CopyPurpose, discardCopy, giveUpCopies, orGiveUpCopy } from "../volumes/copying.ts";
import { notFound, ownBase, ownStem } from "../load.ts";
import { removeSnapshotImage } from "../change.ts";
import { snapshotSpaceRefusal, tellingRefusal } from "../refusals.ts";
import type { ControllerWorld } from "../deps.ts";

/** A checked CreateSnapshot. */
export interface SnapshotRequest {
  readonly name: string;
  /** Id of the volume. */
  readonly source: string;
}

/**
 * Makes a snapshot, or finds the one that an earlier try made. On a Btrfs pool it is a read-only subvolume: three
 * commands, one when it exists. Elsewhere it is a copy, and not ready until that is whole.
 *
 * @throws {VolumeError} exists-incompatible, not-found, exhausted, unavailable; precondition when this pool or this
 * router cannot make one now
 */
export async function createSnapshot(
  world: ControllerWorld,
  request: SnapshotRequest,
  context: CallContext,
): Promise<StoredSnapshot> {
  const refusal = (error: VolumeError) => snapshotSpaceRefusal(request.source, error);
  return await tellingRefusal(world, refusal, () => findOrMake(world, request, context));
}

async function findOrMake(
  world: ControllerWorld,
  request: SnapshotRequest,
  context: CallContext,
): Promise<StoredSnapshot> {
  const { cluster, basePaths } = world.settings;
  const id = snapshotIdFor(request.name, cluster);
  const view = await world.store.createView(
    { id: request.source, stem: ownStem(world, request.source), folder: "" },
    context,
  );
  const existing = ownSnapshots(parseSnapshots(view.files), cluster, basePaths).find((one) => one.id === id);
  if (existing !== undefined) {
    assertSameSource(existing, request.source);
    assertStays(world, existing);
  }
  const unfinished = unfinishedSnapshots(view.files, id, cluster, basePaths);
  if (existing?.ready) {
    await giveUpCopies(world, id, unfinished);
    return existing;
  }
  const from = { kind: "volume", id: request.source } as const;
  const purpose = { key: id, object: "snapshot", from, unfinished } as const;
  const made = await orGiveUpCopy(world, purpose, () => makeSnapshot(world, view, purpose, context));
  return made.ready ? await assertStillRoom(world, made, context) : made;
}

/** @throws {VolumeError} busy while a removal that was sent earlier may still come */
function assertStays(world: ControllerWorld, { id, imagePath }: StoredSnapshot): void {
  if (!world.unsettled.wasSent(id, imagePath)) return;
  throw new VolumeError(
    "busy",
    `Cannot keep the snapshot as it was to be deleted a short time ago, which may still happen: snapshot=${id}; ` +
      "delete it, or try again in some minutes",
  );
}

async function makeSnapshot(
  world: ControllerWorld,
  view: CreateView,
  purpose: CopyPurpose,
  context: CallContext,
): Promise<StoredSnapshot> {
  const source = findVolume(world, view, purpose.from.id);
  const name: SnapshotName = {
    id: purpose.key,
    source: purpose.from.id,
    createdAtSeconds: Math.floor(world.clock.now() / 1000),
    blank: source.blank,
    cluster: world.settings.cluster,
  };
  const base = ownBase(world, source.volume.stored);
  assertRoom(view, base, source.sizeBytes, world.settings.overcommit, purpose.unfinished);
  return source.place.subvolume === undefined
    ? await copySnapshot(world, view, source, name, purpose, context)
    : await freezeSubvolume(world, source, name, context);
}

function findVolume(
  world: ControllerWorld,
  view: CreateView,
  id: string,
): FoundVolume {
  const { cluster, basePaths, settleMs } = world.settings;
  assertNotForeign(view.foreign, "snapshot");
  const stored = view.volumes.find((volume) => volume.id === id);
  if (stored === undefined) {
    assertGone(id, ownStem(world, id), view, basePaths, settleMs);
    throw notFound("snapshot", id);
  }
  const source = sourceOf(world, assertOwned(stored, cluster, "snapshot"), view, "snapshot");
  const base = ownBase(world, stored);
  if (basePaths.includes(base)) return source;
  throw new VolumeError(
    "precondition",
    `Cannot snapshot the volume as it lies outside the allowed folders: volume=${id} folder=${base} ` +
      `allowed=${basePaths.join(", ")} (--base-path)`,
  );
}

/** The router makes it of one moment, also while the volume is written to: what a power cut would have left. */
async function freezeSubvolume(
  world: ControllerWorld,
  source: FoundVolume,
  name: SnapshotName,
  context: CallContext,
): Promise<StoredSnapshot> {
  const parent = source.place.subvolume!;
  const base = ownBase(world, source.volume.stored);
  const place = subvolumePlace(`${base}/${formatSnapshotName(name)}`, parent.label);
  const subvolume = { ...place.subvolume!, parent, readOnly: true, ...blankGuard(source) };
  const outcome = await world.store.addSubvolume(subvolume, partIn(base, name), context);
  return await assertMade(world, name, place, outcome, context);
}

/** What every path of the snapshot in that folder holds. A copy that somebody has made elsewhere is none of it. */
function partIn(base: string, { id }: SnapshotName): string {
  return base + snapshotPart(id);
}

/** Two controllers at once may both have made one: whoever sees another one takes its own back. */
async function assertMade(
  world: ControllerWorld,
  name: SnapshotName,
  place: ImagePlace,
  outcome: MutationOutcome<FileView>,
  context: CallContext,
): Promise<StoredSnapshot> {
  const { after, refusal } = outcome;
  const all = parseSnapshots(after.files).filter((one) => one.cluster === name.cluster && one.ready);
  const made = all.find((one) => one.imagePath === place.path);
  if (made !== undefined && all.length === 1) return made;
  if (made !== undefined) await removeSnapshotImage(world, name.id, place, context);
  if (made !== undefined || all.length > 0) {
    throw new VolumeError(
      "busy",
      `Cannot create the snapshot as another one of its name was made at the same time: snapshot=${name.id}; try again`,
    );
  }
  throw notMade(name, refusal, place.subvolume);
}

function notMade(
  { id, source, cluster }: SnapshotName,
  refusal: string | undefined,
  made?: SubvolumeRef,
): VolumeError {
  const hint = made === undefined
    ? ""
    : ` (no other subvolume may be called ${stemOf(source, cluster)}, nor its volume change meanwhile)`;
  const reason = refusal === undefined
    ? `the router did not do it${hint}`
    : `the router answered ${JSON.stringify(refusal.slice(0, 200))}`;
  return new VolumeError(
    "unavailable",
    `Cannot create the snapshot as ${reason}: snapshot=${id} volume=${source}`,
  );
}

async function copySnapshot(
  world: ControllerWorld,
  view: CreateView,
  source: FoundVolume,
  name: SnapshotName,
  purpose: CopyPurpose,
  context: CallContext,
): Promise<StoredSnapshot> {
  const base = ownBase(world, source.volume.stored);
  const place = plainPlace(`${base}/${formatSnapshotName(name)}.img`);
  const copy = await copyImage(world, { ...purpose, source, target: place, state: view }, context);
  const { target, finished } = copy;
  if (finished === undefined) return pendingSnapshot(target.path, source.sizeBytes);
  const part = partIn(base, name);
  const outcome = await world.store.renameFile(finished.path, target.path, finished.guard, part, context);
  if (outcome.after.files.some((file) => file.path === finished.path)) {
    await discardCopy(world, finished.path);
    if (outcome.refusal !== undefined) throw notMade(name, outcome.refusal);
    throw new VolumeError(
      "busy",
      `Cannot create the snapshot as its volume was changed while it was copied: snapshot=${name.id} ` +
        `volume=${name.source}; try again`,
    );
  }
  return await assertMade(world, name, target, outcome, context);
}

/** As it will be called: its time is that of the call that began the copy. */
function pendingSnapshot(imagePath: string, sizeBytes: bigint): StoredSnapshot {
  const [named] = parseSnapshots([{ path: imagePath, sizeBytes, directory: false }]);
  return { ...named!, ready: false };
}

/** A volume or another snapshot may have taken the room at the same time. */
async function assertStillRoom(
  world: ControllerWorld,
  made: StoredSnapshot,
  context: CallContext,
): Promise<StoredSnapshot> {
  const view = await world.store.createView(undefined, context);
  const over = overPromisedBytes(getPool(view, made.imagePath), view, world.settings.overcommit);
  if (over === 0n) return made;
  const { after } = await removeSnapshotImage(world, made.id, placeOf(made.imagePath, view.pools), context);
  const left = after.files.some((file) => file.path === made.imagePath);
  throw new VolumeError(
    left ? "unavailable" : "exhausted",
    `Cannot keep the snapshot as others took the room at the same time: snapshot=${made.id} over=${over}` +
      (left ? `; it could not be taken back: path=${made.imagePath}` : ""),
  );
}
