import { answered } from "../not_done.ts";
import { newNonce } from "../../volume/model/epoch.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import type { CopyAbout, FinishedCopy } from "./copies.ts";
import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import { plainLocation, unfinishedPath } from "../../volume/model/layout.ts";
import type { NewFolder } from "../../volume/ports/store.ts";
import type { ImageLocation, VolumeView } from "../../volume/model/inventory.ts";
import { snapshotPart } from "../../volume/model/snapshots/snapshots.ts";
import { formatSource, type SourceRef } from "../../volume/model/sources.ts";
import { assertNotUsedByRouter } from "../../volume/rules/router_uses.ts";
import { assertNotShared, ownFilePrefix } from "../load.ts";
import { waitForGrace } from "../records/grace.ts";
import { tidy } from "../tidy.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** What a copy is made for. */
export interface CopyPurpose {
  /** What the copy becomes: the id of a volume or a snapshot. */
  readonly key: string;
  /** As an error says it. */
  readonly object: "volume" | "snapshot";
  readonly from: SourceRef;
  /** Paths of copies that were seen and never finished. */
  readonly unfinished: readonly string[];
}

/** A copy of an image to be made by `/file/copy`. */
export interface CopyRequest extends CopyPurpose {
  readonly source: FoundSource;
  /** Where it is to be in the end. */
  readonly target: ImageLocation;
  /** The folder of the target, where it is missing. */
  readonly makeFolder?: NewFolder;
}

/** A router tells its uptime in whole seconds. */
const uptimeStepMs = 1_000;

/** A copy that is being made, or was. */
export interface Copy {
  /** Where it is to be in the end: as the call said that began it. */
  readonly target: ImageLocation;
  /** Undefined while the copy goes on. */
  readonly finished: FinishedCopy | undefined;
}

/**
 * Copies an image, or joins the copy that an earlier call began, for as long as the call lasts. Whoever gets the result
 * has to rename it, if its guard still holds.
 *
 * @throws {VolumeError} precondition when this router cannot copy a file, or the source is in use; exists-incompatible
 * when something else is being copied for that name; busy when the source was changed since the copy began
 */
export async function copyImage(call: ControllerCall, request: CopyRequest): Promise<Copy> {
  const { key, target } = request;
  const sourcePath = request.source.location.path;
  const about = { source: formatSource(request.from), sourcePath, target };
  const going = call.copies.find(key);
  if (going !== undefined) assertSameCopy(request, going);
  assertCopies(call, request);
  // One of that name was deleted and made again: its data is another.
  if (going !== undefined && going.sourcePath !== sourcePath) await call.copies.cancel(key);
  const joined = call.copies.find(key)?.target ?? target;
  const finished = await call.copies.join(
    key,
    about,
    (longer) => makeCopy({ ...call, context: longer }, request),
    call.context,
  );
  if (finished !== undefined) await assertOfSource(call, request, finished);
  return { target: joined, finished };
}

/**
 * Refuses, and removes, a copy that an earlier call began of a volume whose record has changed since. A volume of the same
 * name may have been made in its place: its path is the same, the copy holds the deleted one's data, and what the caller
 * concludes from the record, such as that the volume is blank, does not hold for that data.
 *
 * @throws {VolumeError} busy
 */
async function assertOfSource(
  call: ControllerCall,
  request: CopyRequest,
  { path, guard }: FinishedCopy,
): Promise<void> {
  const { volume } = request.source;
  if (guard?.comment === volume?.stored.comment) return;
  await discardCopy(call, path);
  throw sourceChanged(request);
}

async function makeCopy(call: ControllerCall, request: CopyRequest): Promise<FinishedCopy> {
  const { source, target, makeFolder, key, object } = request;
  for (const path of request.unfinished) {
    await call.store.removeImage(plainLocation(path), path, call.context);
  }
  const { volume } = source;
  if (volume !== undefined) await waitForGrace(call, volume, "copy");
  // A disk that uses the image now may write to it, and be gone when the copy ends.
  assertUnused(call, request, await readSource(call, request));
  const path = unfinishedPath(target.path, newNonce(call.random));
  const beganMs = call.clock.monotonicMs();
  try {
    const { done, refusal } = await call.store.copyFile(source.location.path, path, call.context, makeFolder);
    if (done) {
      const view = await readSource(call, request, path);
      // It may show an earlier record: then nothing tells that the source was used meanwhile.
      if (view.upMs + uptimeStepMs < call.clock.monotonicMs() - beganMs) throw restarted(request);
      assertWhole(request, view, path);
      assertUnused(call, request, view);
      return { path, guard: volume?.stored };
    }
    throw new VolumeError(
      "unavailable",
      `Cannot create the ${object} because its data was not copied to the end: ` +
        `${object}=${key}${answered(refusal)}`,
    );
  } catch (error) {
    await discardCopy(call, path);
    throw error;
  }
}

/**
 * Reads the source of a copy, the disks that use its image, and the file at the path. One command. A read of all disks
 * would show few of the router's uses.
 */
async function readSource(
  call: ControllerCall,
  { from: { kind, id } }: CopyRequest,
  path?: string,
): Promise<VolumeView> {
  const filePrefix = kind === "volume" ? ownFilePrefix(call, id) : snapshotPart(id);
  return await call.store.view(id, filePrefix, call.context, path);
}

/**
 * A router that says "done" of half a copy must not make anybody believe in it: the rest would read as zeros. The image is
 * what was copied: it may be larger than its disk, of which the router forgot that it had grown.
 */
function assertWhole({ source, object, key }: CopyRequest, { files }: VolumeView, path: string): void {
  const copy = files.find((file) => file.path === path);
  const image = files.find((file) => file.path === source.location.path);
  const sizes = [source.sizeBytes, image?.sizeBytes ?? 0n];
  if (image !== undefined && sizes.every((sizeBytes) => copy !== undefined && copy.sizeBytes >= sizeBytes)) {
    return;
  }
  throw new VolumeError(
    "unavailable",
    `Cannot create the ${object} because the router reported an incomplete copy as complete: ` +
      `${object}=${key} size=${copy?.sizeBytes ?? "none"} disk=${source.sizeBytes} ` +
      `image=${image?.sizeBytes ?? "none"}; try again`,
  );
}

/**
 * Refuses a copy whose source may be written to when it begins, or when it ends: it would not be of one moment. A person
 * can turn an export on, have the router mount the disk, or make another disk of the image, without a change of the
 * record.
 *
 * @throws {VolumeError} busy when the source was changed; precondition while the router or another disk uses the image
 */
function assertUnused(call: ControllerCall, request: CopyRequest, view: VolumeView): void {
  const { from: { id }, source: { volume, location } } = request;
  if (volume === undefined) return assertSnapshotUnused(id, location, view);
  const { volume: stored } = view;
  if (stored?.comment !== volume.stored.comment || stored.exported) throw sourceChanged(request);
  assertNotShared(call, id, view, "copy");
  assertNotUsedByRouter(stored, "copy");
}

function assertSnapshotUnused(
  id: string,
  { path, subvolume }: ImageLocation,
  { volume, sharers }: VolumeView,
): void {
  // The subvolume of a snapshot is read-only, so no disk can write to an image in it.
  if (subvolume !== undefined) return;
  const user = [volume, ...sharers].find((disk) => disk?.imagePath === path);
  if (user === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot copy the snapshot because a disk uses its image: snapshot=${id} disk=${user.id} path=${path}`,
  );
}

/**
 * What else a message says of a copy that goes on: the copies before it, as a router is asked for a few at once. One that
 * hangs keeps its place for a day, unless what it is made for is deleted.
 */
export function copiesBefore({ copies }: Pick<ControllerDeps, "copies">, key: string): string {
  const before = copies.before(key);
  return before.length === 0
    ? ""
    : `; the copies for ${before.join(", ")} began before it, and only two go on at once`;
}

function restarted({ object, key }: CopyRequest): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot create the ${object} because the router restarted while its data was copied: ${object}=${key}; try again`,
  );
}

function sourceChanged({ object, key, from }: CopyRequest): VolumeError {
  return new VolumeError(
    "busy",
    `Cannot create the ${object} because its source was changed while it was copied: ${object}=${key} source=${from.id}; try again`,
  );
}

/**
 * Removes a copy that is of no use, unless a disk uses it. If it cannot be removed now, the next try or a delete does it.
 */
export async function discardCopy(deps: ControllerDeps, path: string): Promise<void> {
  try {
    await tidy(deps, "copy", (context) => deps.store.removeImage(plainLocation(path), path, context));
  } catch (error) {
    deps.notes.warn("an unfinished copy could not be removed", { path, reason: String(error) });
  }
}

/** Removes a copy that no disk was added for, under whichever of its two names it is. */
export async function discardFinished(
  deps: ControllerDeps,
  { path }: Pick<FinishedCopy, "path">,
  target: ImageLocation,
): Promise<void> {
  try {
    await tidy(deps, "copy", async (context) => {
      const view = await deps.store.files(path, context);
      // A router that has restarted may show the disk only later.
      assertAbsenceProven(view, [path], deps.settings.settleMs);
      // While it has its first name, whatever has the other one is not this copy.
      const location = view.files.some((file) => file.path === path) ? plainLocation(path) : target;
      await deps.store.removeImage(location, path, context);
    });
  } catch (error) {
    deps.notes.warn("a copy could not be removed", { path, target: target.path, reason: String(error) });
  }
}

/** Errors after which nobody asks again for the same. */
const forGood: ReadonlySet<string> = new Set(["not-found", "precondition", "out-of-range", "invalid"]);

/**
 * Does what may need a copy. When that fails for good, the copy that goes on for it is ended, and what was left of
 * earlier ones is removed: nobody may ask for it ever again.
 */
export async function orGiveUpCopy<Result>(
  deps: ControllerDeps,
  { key, from, unfinished }: CopyPurpose,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const going = deps.copies.find(key);
    const isOwn = going === undefined || going.source === formatSource(from);
    if (isOwn && VolumeError.is(error) && forGood.has(error.kind)) {
      await giveUpCopies(deps, key, unfinished);
    }
    throw error;
  }
}

/** Ends the copy that goes on under that key, and removes what earlier ones have left: none is needed any more. */
export async function giveUpCopies(
  deps: ControllerDeps,
  key: string,
  unfinished: readonly string[],
): Promise<void> {
  await deps.copies.cancel(key);
  for (const path of unfinished) await discardCopy(deps, path);
}

function assertSameCopy({ key, object, from, target }: CopyRequest, going: CopyAbout): void {
  // The time of a snapshot is in its name, and passes.
  const sameLocation = object === "snapshot" || going.target.path === target.path;
  if (going.source === formatSource(from) && sameLocation) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot create the ${object} because a copy of that name is in progress: ${object}=${key} source=${going.source} ` +
      `path=${going.target.path}; requested source=${formatSource(from)} path=${target.path}`,
  );
}

/**
 * @throws {VolumeError} precondition when no copy can be made that is certainly whole and of one moment
 */
function assertCopies(deps: ControllerDeps, { source, object, key }: CopyRequest): void {
  const { copyReturns } = deps.settings;
  const { volume } = source;
  const reason = copyReturns === undefined
    ? "its image can only be copied as a file, and it is not known whether this router's /file/copy answers after the copy: " +
      "run rds-csi doctor --probe, and set the controller's --router-profile"
    : copyReturns === "at-once"
    ? "its image can only be copied as a file, and this router's /file/copy answers before the copy is complete"
    : volume !== undefined && (volume.record.holders.length > 0 || volume.stored.exported)
    ? "its image can only be copied as a file, and a copy of a published volume would be inconsistent: " +
      "stop its pods first"
    : undefined;
  if (reason !== undefined) {
    throw new VolumeError("precondition", `Cannot create the ${object} because ${reason}: ${object}=${key}`);
  }
  if (volume !== undefined) assertNotUsedByRouter(volume.stored, "copy");
}

/** A source as the router shows it. */
export interface FoundSource {
  readonly location: ImageLocation;
  readonly sizeBytes: bigint;
  /** Whether nothing can have been written to it yet. */
  readonly blank: boolean;
  readonly encrypted: boolean;
  /** The volume; undefined for a snapshot, which never changes. */
  readonly volume: OwnedVolume | undefined;
}
