import type { ControllerEvent } from "../../volume/ports/controller_events.ts";
import { folderOf } from "../../volume/model/sources.ts";
import { getPool, overPromisedBytes } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { filePrefixOf } from "../../volume/model/image_names.ts";
import { assertOwnLabel, locationOf, plainLocation, subvolumeLocation } from "../../volume/model/layout.ts";
import { assertNotForeign, assertOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type {
  FileView,
  ImageLocation,
  RouterState,
  SubvolumeRef,
  VolumeView,
} from "../../volume/model/inventory.ts";
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
} from "../../volume/model/snapshots/snapshots.ts";
import { snapshotIdFor } from "../../volume/model/snapshots/snapshots.ts";
import { formatBytes } from "../../volume/model/sizes.ts";
import type { FinishedCopy } from "../volumes/copies.ts";
import { blankGuard, type FoundVolume, sourceOf } from "../volumes/clone.ts";
import {
  copiesBefore,
  copyImage,
  type CopyPurpose,
  discardCopy,
  giveUpCopies,
  orGiveUpCopy,
} from "../volumes/copying.ts";
import { assertVolumeGone, notFound, ownFilePrefix } from "../load.ts";
import { readEvery } from "../reads.ts";
import { whyNotDone } from "../not_done.ts";
import { removeSnapshotImage } from "./remove.ts";
import type { View } from "../records/view.ts";
import { roomFor } from "../volumes/room.ts";
import { reportingRefusal } from "../refusals.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** A checked CreateSnapshot. */
export interface SnapshotRequest {
  readonly name: string;
  /** Id of the volume. */
  readonly source: string;
}

/**
 * Makes a snapshot, or finds the one that an earlier try made. On a Btrfs pool it is a read-only subvolume: two commands
 * while there is ample room, else three; one when it exists. Elsewhere it is a copy.
 *
 * @throws {VolumeError} exists-incompatible, not-found, exhausted; unavailable, also while a copy goes on; precondition
 * when this pool or this router cannot make one now
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

/** What a call looks at: the volume, and all that there is of the snapshot. */
type SnapshotView = Omit<VolumeView, "sharers">;

async function findOrMake(call: ControllerCall, request: SnapshotRequest): Promise<StoredSnapshot> {
  const make = async () => {
    const readAll = () => readEvery(call, request.source);
    const view = call.promised.expects(0n) ? await readSource(call, request) : await readAll();
    // A read of every disk always tells whether there is room.
    return await findOrMakeBy(call, view, request) ?? (await findOrMakeBy(call, await readAll(), request))!;
  };
  return await call.promised.afterFirst(make);
}

/** Reads no other disk and no other snapshot. */
async function readSource(call: ControllerCall, request: SnapshotRequest): Promise<View> {
  const part = snapshotPart(snapshotIdFor(request.name, call.settings.cluster));
  const { source: id } = request;
  const wanted = { id, filePrefix: ownFilePrefix(call, id), folder: "" };
  const view = await call.store.sourceView(wanted, { part }, call.context);
  return { ...view, id, isAssumed: false };
}

/** Undefined when only a read of every disk can tell whether there is room. */
async function findOrMakeBy(
  call: ControllerCall,
  view: View,
  request: SnapshotRequest,
): Promise<StoredSnapshot | undefined> {
  const { promised } = call;
  const { existing, purpose } = await findMade(call, view, request);
  if (existing !== undefined) return existing;
  const made = await orGiveUpCopy(call, purpose, async () => {
    const source = findVolume(call, view, request.source);
    const { location, sizeBytes } = source;
    const room = roomFor(call, view, location.path, sizeBytes, purpose.unfinished);
    if (room.isAmple?.(sizeBytes) === false) return undefined;
    const make = await prepareSnapshot(call, view, source, purpose);
    return await promised.during(room.mountPoint, room.bytes, async () => {
      const snapshot = await make();
      // Calls that began meanwhile may have read everything before it was there; its volume may have been grown.
      return { snapshot, isCounted: snapshot.sizeBytes <= sizeBytes && room.isAmple?.() === true };
    });
  });
  if (made === undefined) return undefined;
  return made.isCounted ? made.snapshot : await assertStillRoom(call, made.snapshot);
}

/** The whole snapshot that an earlier try made, if there is one, and what another one would be made for. */
async function findMade(
  call: ControllerCall,
  view: SnapshotView,
  request: SnapshotRequest,
): Promise<{ readonly existing: StoredSnapshot | undefined; readonly purpose: CopyPurpose }> {
  const { cluster, basePaths } = call.settings;
  const id = snapshotIdFor(request.name, cluster);
  const existing = ownSnapshots(parseSnapshots(view.files), cluster, basePaths).find((one) => one.id === id);
  if (existing !== undefined) {
    assertSameSource(existing, request.source);
    assertStays(call, existing);
  }
  const unfinished = unfinishedSnapshots(view.files, id, cluster, basePaths);
  const from = { kind: "volume", id: request.source } as const;
  const purpose = { key: id, object: "snapshot", from, unfinished } as const;
  if (!existing?.ready) return { existing: undefined, purpose };
  await giveUpCopies(call, id, unfinished);
  return { existing, purpose };
}

/** @throws {VolumeError} busy while a removal that was sent earlier, also by another controller, may still come */
function assertStays(
  { memory: { inDoubt } }: ControllerDeps,
  { id, imagePath, ready }: StoredSnapshot,
): void {
  const mayGo = ready ? inDoubt.mayStillApply(id, imagePath) : inDoubt.wasSent(id, imagePath);
  if (!mayGo) return;
  if (!inDoubt.wasSent(id, imagePath)) {
    throw new VolumeError(
      "busy",
      `Cannot keep the snapshot yet because the previous controller may have sent its removal: snapshot=${id}; try ` +
        "again in some minutes",
    );
  }
  throw new VolumeError(
    "busy",
    `Cannot keep the snapshot because a recent deletion of it may still happen: snapshot=${id}; ` +
      "delete it, or try again in some minutes",
  );
}

/**
 * Makes nothing where a removal that was sent earlier may still come: of the same name, source and second.
 *
 * @throws {VolumeError} busy
 */
function assertNoRemovalOf({ memory: { inDoubt } }: ControllerDeps, id: string, imagePath: string): void {
  if (!inDoubt.wasSent(id, imagePath)) return;
  throw new VolumeError(
    "busy",
    `Cannot create the snapshot because its removal a moment ago may still happen: snapshot=${id}; try again`,
  );
}

/**
 * Copies the image where it lies in no subvolume, which may take hours and many calls. What is returned makes the snapshot
 * with one command.
 */
async function prepareSnapshot(
  call: ControllerCall,
  state: RouterState,
  source: FoundVolume,
  purpose: CopyPurpose,
): Promise<() => Promise<StoredSnapshot>> {
  const name: SnapshotName = {
    id: purpose.key,
    source: purpose.from.id,
    createdAtSeconds: Math.floor(call.clock.now() / 1000),
    blank: source.blank,
    encrypted: source.encrypted,
    cluster: call.settings.cluster,
  };
  return source.location.subvolume === undefined
    ? await copyForSnapshot(call, source, name, purpose)
    : () => freezeSubvolume(call, state, source, name);
}

function findVolume(deps: ControllerDeps, view: SnapshotView, id: string): FoundVolume {
  const { cluster, basePaths } = deps.settings;
  assertNotForeign(view.foreign, "snapshot");
  const { volume: stored } = view;
  if (stored === undefined) {
    assertVolumeGone(deps, id, view);
    throw notFound("snapshot", id);
  }
  const source = sourceOf(deps, assertOwned(stored, cluster, "snapshot"), view, "snapshot");
  const base = folderOf(source.volume, cluster);
  if (basePaths.includes(base)) return source;
  throw new VolumeError(
    "precondition",
    `Cannot snapshot the volume because it is outside the allowed folders: volume=${id} folder=${base} ` +
      `allowed=${basePaths.join(", ")} (--base-path)`,
  );
}

/** The router makes it of one moment, also while the volume is written to: what a power cut would have left. */
async function freezeSubvolume(
  call: ControllerCall,
  state: RouterState,
  source: FoundVolume,
  name: SnapshotName,
): Promise<StoredSnapshot> {
  assertOwnLabel(getPool(state, source.volume.stored.imagePath));
  const parent = source.location.subvolume!;
  const base = folderOf(source.volume, call.settings.cluster);
  const location = subvolumeLocation(`${base}/${formatSnapshotName(name)}`, parent.label);
  assertNoRemovalOf(call, name.id, location.path);
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
  outcome: MutationOutcome<Pick<FileView, "files">>,
): Promise<StoredSnapshot> {
  const { after, refusal } = outcome;
  const all = parseSnapshots(after.files).filter((one) => one.cluster === name.cluster && one.ready);
  const made = all.find((one) => one.imagePath === location.path);
  if (made !== undefined && all.length === 1) {
    call.memory.inDoubt.wrote(name.id, made.imagePath);
    return made;
  }
  if (made !== undefined) await removeSnapshotImage(call, name.id, location);
  if (made !== undefined || all.length > 0) {
    throw new VolumeError(
      "busy",
      `Cannot create the snapshot because a snapshot of that name was made at the same time: snapshot=${name.id}; try again`,
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
    `Cannot create the snapshot because ${reason}: snapshot=${id} volume=${source}`,
  );
}

async function copyForSnapshot(
  call: ControllerCall,
  source: FoundVolume,
  name: SnapshotName,
  purpose: CopyPurpose,
): Promise<() => Promise<StoredSnapshot>> {
  const base = folderOf(source.volume, call.settings.cluster);
  const location = plainLocation(`${base}/${formatSnapshotName(name)}.img`);
  assertNoRemovalOf(call, name.id, location.path);
  const copy = await copyImage(call, { ...purpose, source, target: location });
  const { finished } = copy;
  // Whoever is told that a snapshot was cut, if not yet ready, changes the volume (CSI specification, "CreateSnapshot").
  if (finished === undefined) {
    throw new VolumeError(
      "unavailable",
      `Cannot create the snapshot yet because its data is still being copied: snapshot=${name.id} ` +
        `volume=${name.source}; leave the volume alone, and try again${copiesBefore(call, name.id)}`,
    );
  }
  return () => nameCopy(call, name, finished, copy.target, partIn(base, name));
}

async function nameCopy(
  call: ControllerCall,
  name: SnapshotName,
  finished: FinishedCopy,
  target: ImageLocation,
  part: string,
): Promise<StoredSnapshot> {
  const outcome = await call.store.renameFile(finished.path, target.path, finished.guard, part, call.context);
  if (outcome.after.files.some((file) => file.path === finished.path)) {
    await discardCopy(call, finished.path);
    if (outcome.refusal !== undefined) throw notMade(name, outcome.refusal);
    throw new VolumeError(
      "busy",
      `Cannot create the snapshot because its volume was changed while it was copied: snapshot=${name.id} ` +
        `volume=${name.source}; try again`,
    );
  }
  return await assertMade(call, name, target, outcome);
}

/** A volume or another snapshot may have taken the room at the same time. */
async function assertStillRoom(call: ControllerCall, made: StoredSnapshot): Promise<StoredSnapshot> {
  const view = await call.promised.learnFrom(() => call.store.createView(undefined, call.context));
  const over = overPromisedBytes(getPool(view, made.imagePath), view, call.settings.overcommit);
  if (over === 0n) return made;
  const { after } = await removeSnapshotImage(call, made.id, locationOf(made.imagePath, view.pools));
  const left = after.files.some((file) => file.path === made.imagePath);
  throw new VolumeError(
    left ? "unavailable" : "exhausted",
    "Cannot keep the snapshot because others took the room at the same time: " +
      `snapshot=${made.id}, ${formatBytes(over)} too much` +
      (left ? `; it could not be taken back: path=${made.imagePath}` : ""),
  );
}

/** The event for a pool with no room for a snapshot, on the volume that it was to be made of; undefined for any other error. */
function snapshotSpaceRefusal(source: string, error: VolumeError): ControllerEvent | undefined {
  if (error.kind !== "exhausted") return undefined;
  const message = `No snapshot of the volume was made: ${error.message}`;
  return { kind: "out-of-space", about: source, message };
}
