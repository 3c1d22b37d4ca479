import { folderOf } from "../../volume/model/sources.ts";
import { assertGone } from "../../volume/rules/absence.ts";
import { assertRoom, getPool, overPromisedBytes } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import {
  assertOwnLabel,
  filePrefixOf,
  locationOf,
  plainLocation,
  subvolumeLocation,
} from "../../volume/model/layout.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { CreateView, FileView, ImageLocation, SubvolumeRef } from "../../volume/model/inventory.ts";
import type { MutationOutcome } from "../../volume/ports/store.ts";
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
import { poolOf, snapshotIdFor } from "../../volume/model/ids.ts";
import { blankGuard, type FoundVolume, sourceOf } from "../volumes/clone.ts";
import { copyImage, type CopyPurpose, discardCopy, giveUpCopies, orGiveUpCopy } from "../volumes/copying.ts";
import { notFound, ownFilePrefix } from "../load.ts";
import { removeSnapshotImage, whyNotDone } from "../change.ts";
import { reportingRefusal, snapshotSpaceRefusal } from "../refusals.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

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
  deps: ControllerDeps,
  request: SnapshotRequest,
  context: CallContext,
): Promise<StoredSnapshot> {
  const call = { ...deps, context };
  const refusal = (error: VolumeError) => snapshotSpaceRefusal(request.source, error);
  return await reportingRefusal(deps, refusal, () => findOrMake(call, request));
}

async function findOrMake(call: ControllerCall, request: SnapshotRequest): Promise<StoredSnapshot> {
  const { cluster, basePaths } = call.settings;
  const id = snapshotIdFor(request.name, cluster);
  const view = await call.store.createView(
    { id: request.source, filePrefix: ownFilePrefix(call, request.source), folder: "" },
    call.context,
  );
  const existing = ownSnapshots(parseSnapshots(view.files), cluster, basePaths).find((one) => one.id === id);
  if (existing !== undefined) {
    assertSameSource(existing, request.source);
    assertStays(call, existing);
  }
  const unfinished = unfinishedSnapshots(view.files, id, cluster, basePaths);
  if (existing?.ready) {
    await giveUpCopies(call, id, unfinished);
    return existing;
  }
  const from = { kind: "volume", id: request.source } as const;
  const purpose = { key: id, object: "snapshot", from, unfinished } as const;
  const made = await orGiveUpCopy(call, purpose, () => makeSnapshot(call, view, purpose));
  return made.ready ? await assertStillRoom(call, made) : made;
}

/** @throws {VolumeError} busy while a removal that was sent earlier, also by another controller, may still come */
function assertStays({ inDoubt }: ControllerDeps, { id, imagePath, ready }: StoredSnapshot): void {
  const mayGo = ready ? inDoubt.mayStillApply(id, imagePath) : inDoubt.wasSent(id, imagePath);
  if (!mayGo) return;
  if (!inDoubt.wasSent(id, imagePath)) {
    throw new VolumeError(
      "busy",
      `Cannot keep the snapshot yet as the controller before this one may have sent its removal: snapshot=${id}; try ` +
        "again in some minutes",
    );
  }
  throw new VolumeError(
    "busy",
    `Cannot keep the snapshot as it was to be deleted a short time ago, which may still happen: snapshot=${id}; ` +
      "delete it, or try again in some minutes",
  );
}

async function makeSnapshot(
  call: ControllerCall,
  view: CreateView,
  purpose: CopyPurpose,
): Promise<StoredSnapshot> {
  const source = findVolume(call, view, purpose.from.id);
  const name: SnapshotName = {
    id: purpose.key,
    source: purpose.from.id,
    createdAtSeconds: Math.floor(call.clock.now() / 1000),
    blank: source.blank,
    cluster: call.settings.cluster,
  };
  const base = folderOf(source.volume, call.settings.cluster);
  assertRoom(view, base, source.sizeBytes, call.settings.overcommit, purpose.unfinished);
  const make = () =>
    source.location.subvolume === undefined
      ? copySnapshot(call, view, source, name, purpose)
      : freezeSubvolume(call, view, source, name);
  return await call.promised.during(poolOf(base), source.sizeBytes, make);
}

function findVolume(deps: ControllerDeps, view: CreateView, id: string): FoundVolume {
  const { cluster, basePaths, settleMs } = deps.settings;
  assertNotForeign(view.foreign, "snapshot");
  const stored = view.volumes.find((volume) => volume.id === id);
  if (stored === undefined) {
    assertGone(id, ownFilePrefix(deps, id), view, basePaths, settleMs);
    throw notFound("snapshot", id);
  }
  const source = sourceOf(deps, assertOwned(stored, cluster, "snapshot"), view, "snapshot");
  const base = folderOf(source.volume, cluster);
  if (basePaths.includes(base)) return source;
  throw new VolumeError(
    "precondition",
    `Cannot snapshot the volume as it lies outside the allowed folders: volume=${id} folder=${base} ` +
      `allowed=${basePaths.join(", ")} (--base-path)`,
  );
}

/** The router makes it of one moment, also while the volume is written to: what a power cut would have left. */
async function freezeSubvolume(
  call: ControllerCall,
  view: CreateView,
  source: FoundVolume,
  name: SnapshotName,
): Promise<StoredSnapshot> {
  assertOwnLabel(getPool(view, source.volume.stored.imagePath));
  const parent = source.location.subvolume!;
  const base = folderOf(source.volume, call.settings.cluster);
  const location = subvolumeLocation(`${base}/${formatSnapshotName(name)}`, parent.label);
  const subvolume = { ...location.subvolume!, parent, readOnly: true, ...blankGuard(source) };
  const outcome = await call.store.addSubvolume(subvolume, partIn(base, name), call.context);
  return await assertMade(call, name, location, outcome);
}

/** What every path of the snapshot in that folder holds. A copy that somebody has made elsewhere is none of it. */
function partIn(base: string, { id }: SnapshotName): string {
  return base + snapshotPart(id);
}

/** Two controllers at once may both have made one: whoever sees another one takes its own back. */
async function assertMade(
  call: ControllerCall,
  name: SnapshotName,
  location: ImageLocation,
  outcome: MutationOutcome<FileView>,
): Promise<StoredSnapshot> {
  const { after, refusal } = outcome;
  const all = parseSnapshots(after.files).filter((one) => one.cluster === name.cluster && one.ready);
  const made = all.find((one) => one.imagePath === location.path);
  if (made !== undefined && all.length === 1) {
    call.inDoubt.wrote(name.id, made.imagePath);
    return made;
  }
  if (made !== undefined) await removeSnapshotImage(call, name.id, location);
  if (made !== undefined || all.length > 0) {
    throw new VolumeError(
      "busy",
      `Cannot create the snapshot as another one of its name was made at the same time: snapshot=${name.id}; try again`,
    );
  }
  throw notMade(name, refusal, location.subvolume);
}

function notMade(
  { id, source, cluster }: SnapshotName,
  refusal: string | undefined,
  made?: SubvolumeRef,
): VolumeError {
  const hint = made === undefined
    ? ""
    : ` (no other subvolume may be called ${filePrefixOf(source, cluster)}, nor its volume change meanwhile)`;
  const reason = whyNotDone(refusal, hint);
  return new VolumeError(
    "unavailable",
    `Cannot create the snapshot as ${reason}: snapshot=${id} volume=${source}`,
  );
}

async function copySnapshot(
  call: ControllerCall,
  view: CreateView,
  source: FoundVolume,
  name: SnapshotName,
  purpose: CopyPurpose,
): Promise<StoredSnapshot> {
  const base = folderOf(source.volume, call.settings.cluster);
  const location = plainLocation(`${base}/${formatSnapshotName(name)}.img`);
  const copy = await copyImage(call, { ...purpose, source, target: location, state: view });
  const { target, finished } = copy;
  if (finished === undefined) return pendingSnapshot(target.path, source.sizeBytes);
  const part = partIn(base, name);
  const outcome = await call.store.renameFile(finished.path, target.path, finished.guard, part, call.context);
  if (outcome.after.files.some((file) => file.path === finished.path)) {
    await discardCopy(call, finished.path);
    if (outcome.refusal !== undefined) throw notMade(name, outcome.refusal);
    throw new VolumeError(
      "busy",
      `Cannot create the snapshot as its volume was changed while it was copied: snapshot=${name.id} ` +
        `volume=${name.source}; try again`,
    );
  }
  return await assertMade(call, name, target, outcome);
}

/** As it will be called: its time is that of the call that began the copy. */
function pendingSnapshot(imagePath: string, sizeBytes: bigint): StoredSnapshot {
  const [named] = parseSnapshots([{ path: imagePath, sizeBytes, directory: false }]);
  return { ...named!, ready: false };
}

/** A volume or another snapshot may have taken the room at the same time. */
async function assertStillRoom(call: ControllerCall, made: StoredSnapshot): Promise<StoredSnapshot> {
  const view = await call.store.createView(undefined, call.context);
  const over = overPromisedBytes(getPool(view, made.imagePath), view, call.settings.overcommit);
  if (over === 0n) return made;
  const { after } = await removeSnapshotImage(call, made.id, locationOf(made.imagePath, view.pools));
  const left = after.files.some((file) => file.path === made.imagePath);
  throw new VolumeError(
    left ? "unavailable" : "exhausted",
    `Cannot keep the snapshot as others took the room at the same time: snapshot=${made.id} over=${over}` +
      (left ? `; it could not be taken back: path=${made.imagePath}` : ""),
  );
}
