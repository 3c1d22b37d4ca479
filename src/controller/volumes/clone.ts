import { parseRecordedCapabilities, sameKind } from "../../volume/model/capabilities.ts";
import { assertAbsenceProven, assertPoolMounted, assertPoolReadable } from "../../volume/rules/absence.ts";
import { getPool } from "../../volume/rules/capacity.ts";
import { VolumeError } from "../../volume/errors.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import {
  imageLocationFor,
  isNeverUsedMark,
  locationOf,
  plainLocation,
  unfinishedCopies,
} from "../../volume/model/layout.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import type { ImageLocation, RouterState, SourceView, StoredFile } from "../../volume/model/inventory.ts";
import type { DiskGuard, NewVolume } from "../../volume/ports/store.ts";
import {
  assertHoldsFilesystem,
  assertNoImage,
  type CreateRequest,
  missingFolder,
  type VolumePlan,
} from "../../volume/rules/provision.ts";
import { formatComment, isEncrypted, newComment, type OwnedVolume } from "../../volume/model/record.ts";
import { chooseCloneSize } from "../../volume/model/sizes.ts";
import { ownSnapshots, parseSnapshots } from "../../volume/model/snapshots/snapshots.ts";
import type { SourceRef } from "../../volume/model/sources.ts";
import { copiesBefore, copyImage, type CopyPurpose, type FoundSource, orGiveUpCopy } from "./copying.ts";
import { assertGrows } from "./expand.ts";
import { assertOwnImage, notFound, ownFilePrefix } from "../load.ts";
import { readOwned } from "../reads.ts";
import { assertNotImported } from "../../volume/rules/import.ts";
import { answered } from "../not_done.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** A subvolume's snapshot may be called blank only if the source is still blank when the router makes it. */
export function blankGuard({ blank, volume }: FoundSource): { readonly guard?: DiskGuard } {
  if (!blank || volume === undefined) return {};
  const { id, comment } = volume.stored;
  return { guard: { id, comment } };
}

/** A volume as a source. */
export type FoundVolume = FoundSource & { readonly volume: OwnedVolume };

/** A CreateVolume from a source. */
export type CloneRequest = CreateRequest & { readonly source: SourceRef };

/** A source that is there, and what is to be made from it. */
export interface CloneSource {
  readonly found: FoundSource;
  /** The size that the volume is to have in the end. */
  readonly sizeBytes: bigint;
  readonly purpose: CopyPurpose;
}

/**
 * Finds what a volume is to be made from, and the size that it is to have.
 *
 * @throws {VolumeError} not-found when there is no source, precondition when it cannot be copied, out-of-range, unavailable
 */
export async function findCloneSource(
  call: ControllerCall,
  view: SourceView,
  plan: VolumePlan,
  request: CloneRequest,
): Promise<CloneSource> {
  const unfinished = unfinishedCopies(view.files, plan.filePrefix, call.settings.basePaths);
  const purpose = { key: plan.id, object: "volume", from: request.source, unfinished } as const;
  return await orGiveUpCopy(call, purpose, async () => {
    const found = await findSource(call, view, request.source);
    assertSameEncryption(found, plan, request);
    assertSameFilesystem(found, plan, request);
    const sizeBytes = chooseCloneSize(request.range, found.sizeBytes);
    // What is blank gets its file system later.
    if (found.blank) assertHoldsFilesystem(request, sizeBytes);
    if (sizeBytes > found.sizeBytes) assertGrows(call, "create", plan.id, false);
    return { found, sizeBytes, purpose };
  });
}

/**
 * Plans a volume with the data of a volume or a snapshot, as small as the source at first, for which there is room. On a
 * Btrfs pool it is a snapshot of the source's subvolume, made with the disk in one command; else a copy, for which this waits
 * as long as the call lasts.
 *
 * @throws {VolumeError} precondition when it cannot be copied, exhausted, unavailable while the copy goes on
 */
export async function planClone(
  call: ControllerCall,
  view: SourceView,
  plan: VolumePlan,
  source: CloneSource,
): Promise<NewVolume> {
  return await orGiveUpCopy(call, source.purpose, () => planFrom(call, view, plan, source));
}

async function planFrom(
  call: ControllerCall,
  view: SourceView,
  plan: VolumePlan,
  { found: source, purpose }: CloneSource,
): Promise<NewVolume> {
  const pool = getPool(view, plan.basePath);
  const location = imageLocationFor(plan.basePath, plan.filePrefix, pool, call.settings.subvolumeNames);
  const folder = missingFolder(view, plan.basePath, pool, call.settings.subvolumeNames);
  const base = {
    id: plan.id,
    sizeBytes: undefined,
    comment: formatComment(newComment({ ...plan.record, blankEpoch: source.blank ? 1 : 0 })),
    ...folder,
  };
  const parent = source.location.subvolume;
  const sharesBlocks = parent !== undefined && location.subvolume !== undefined &&
    poolOf(source.location.path) === pool.mountPoint;
  if (sharesBlocks) {
    const files = await withoutNeverUsed(call, view, plan, location);
    assertNoImage({ ...view, files }, plan);
    const subvolume = { ...location.subvolume, parent, readOnly: false, ...blankGuard(source) };
    return { ...base, location, subvolume };
  }
  assertNoImage(view, plan);
  const target = plainLocation(`${plan.basePath}/${plan.filePrefix}.img`);
  const { finished } = await copyImage(call, { ...purpose, source, target, ...folder });
  if (finished !== undefined) return { ...base, location: target, copied: finished };
  throw new VolumeError(
    "unavailable",
    `Cannot create the volume yet because its data is still being copied: volume=${plan.id}; ` +
      `try again${copiesBefore(call, plan.id)}`,
  );
}

/** @throws {VolumeError} invalid when the source is encrypted and the volume is not to be, or the other way round */
function assertSameEncryption(
  { encrypted }: FoundSource,
  { id, record }: VolumePlan,
  { source }: CloneRequest,
): void {
  if (encrypted === isEncrypted(record)) return;
  throw new VolumeError(
    "invalid",
    `Cannot create the volume because its source is ${encrypted ? "" : "not "}encrypted: volume=${id} ` +
      `source=${source.id}; use a StorageClass with encrypted=${encrypted}`,
  );
}

/**
 * Also for a source that is blank now: it may be written before it is copied. The record of a raw block volume and the name
 * of a snapshot do not tell what is in them.
 *
 * @throws {VolumeError} invalid when the source's record names another file system
 */
function assertSameFilesystem(
  { volume }: FoundSource,
  { id }: VolumePlan,
  { source, capabilities: { kind } }: CloneRequest,
): void {
  const made = volume && parseRecordedCapabilities(volume.record.capabilities)?.kind;
  if (made?.access !== "mount" || kind.access !== "mount" || sameKind(made, kind)) return;
  throw new VolumeError(
    "invalid",
    `Cannot create the volume because its source holds another file system: volume=${id} source=${source.id} ` +
      `holds=${made.filesystem} asked=${kind.filesystem}; use a StorageClass with ` +
      `csi.storage.k8s.io/fstype=${made.filesystem}`,
  );
}

/**
 * A volume as a source.
 *
 * @throws {VolumeError} precondition when its disk uses a file of another name; unavailable when its pool
 * cannot be read, or shows no label
 */
export function sourceOf(
  deps: ControllerDeps,
  volume: OwnedVolume,
  state: RouterState,
  verb: string,
): FoundVolume {
  const { stored, record } = volume;
  assertNotImported(
    volume,
    verb,
    "its image is no subvolume of its own; copy its data into a volume that this driver makes",
  );
  assertOwnImage(deps, volume, verb);
  assertPoolReadable(state, stored.imagePath);
  const blank = record.blankEpoch > 0 && (record.epoch?.counter ?? 0) === 0;
  const encrypted = isEncrypted(record);
  return {
    location: locationOf(stored.imagePath, state.pools),
    sizeBytes: stored.sizeBytes,
    blank,
    encrypted,
    volume,
  };
}

/**
 * Removes a clone that was cut off before it ever had a disk, and returns the files that are there then: its source may
 * have changed since. A clone without its mark may have been used, whoever removed its disk, and stays. No command where
 * nothing is marked, else one.
 */
async function withoutNeverUsed(
  call: ControllerCall,
  { files }: SourceView,
  { filePrefix }: VolumePlan,
  location: ImageLocation,
): Promise<readonly StoredFile[]> {
  const isMark = ({ path }: StoredFile) => isNeverUsedMark(path, location);
  if (!files.some(isMark)) return files;
  const { after, refusal } = await call.store.removeImage(location, filePrefix, call.context);
  // A pool that went away in between shows no file either.
  assertPoolMounted(after, location.path);
  // What that try sent late may have made its disk right now, which took the mark.
  if (!after.files.some((file) => isMark(file) || file.path === location.path)) return after.files;
  throw new VolumeError(
    "unavailable",
    "Cannot create the volume because the router still has an earlier attempt: " +
      `path=${location.path}${answered(refusal)}`,
  );
}

/**
 * Removes the clone that this call has made, if the router took its mark and then refused its disk. It was not there when
 * the call began. If it cannot be removed now, a delete does it.
 */
export async function discardUnmarked(
  call: ControllerCall,
  id: string,
  location: ImageLocation,
): Promise<void> {
  const filePrefix = ownFilePrefix(call, id);
  try {
    const view = await call.store.files(filePrefix, call.context);
    // A router that has restarted may show the disk only later.
    assertAbsenceProven(view, [location.path], call.settings.settleMs);
    const isThere = view.files.some(({ path }) => path === location.path);
    if (!isThere || view.files.some(({ path }) => isNeverUsedMark(path, location))) return;
    await call.store.removeImage(location, filePrefix, call.context);
  } catch (error) {
    call.notes.warn("a clone could not be removed", { path: location.path, reason: String(error) });
  }
}

/**
 * @throws {VolumeError} not-found when the source is provably not there; precondition when it is not this cluster's;
 * unavailable while it is being copied, or when its absence proves nothing
 */
async function findSource(call: ControllerCall, view: SourceView, source: SourceRef): Promise<FoundSource> {
  const { cluster, basePaths, settleMs } = call.settings;
  if (source.kind === "volume") {
    const volume = view.source === undefined
      ? (await readOwned(call, source.id, "clone")).volume
      : assertOwned(view.source, cluster, "clone");
    if (volume === undefined) throw notFound("clone", source.id);
    return sourceOf(call, volume, view, "clone");
  }
  const snapshots = ownSnapshots(parseSnapshots(view.files), cluster, basePaths);
  const snapshot = snapshots.find(({ id }) => id === source.id);
  if (snapshot === undefined) {
    assertAbsenceProven(view, basePaths, settleMs);
    throw new VolumeError(
      "not-found",
      `Cannot restore the snapshot because there is none: snapshot=${source.id}`,
    );
  }
  if (!snapshot.ready) {
    throw new VolumeError(
      "unavailable",
      `Cannot restore the snapshot because it is still being copied: snapshot=${source.id}`,
    );
  }
  const { imagePath, sizeBytes, blank, encrypted } = snapshot;
  assertPoolReadable(view, imagePath);
  return { location: locationOf(imagePath, view.pools), sizeBytes, blank, encrypted, volume: undefined };
}
