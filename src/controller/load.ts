import { assertGone, assertPoolMounted } from "../volume/rules/absence.ts";
import { VolumeError } from "../volume/errors.ts";
import { isImported, usesOwnImage } from "../volume/model/sources.ts";
import type { ImportClaim } from "../volume/rules/import.ts";
import { baseOf, filePrefixOf, isImageOf } from "../volume/model/layout.ts";
import type { OwnedVolume } from "../volume/model/record.ts";
import { assertNotUsedByRouter } from "../volume/rules/router_uses.ts";
import { assertNotForeign, assertOwned } from "../volume/rules/ownership.ts";
import type { FileView, StoredVolume, VolumeView } from "../volume/model/inventory.ts";
import { importFirst } from "./import/import_disk.ts";
import { migrateFirst } from "./legacy/migrate.ts";
import type { ControllerCall, ControllerDeps } from "./deps.ts";

/** What the names of all files of a volume of this cluster begin with. */
export function ownFilePrefix(deps: ControllerDeps, id: string): string {
  return filePrefixOf(id, deps.settings.cluster);
}

/**
 * The folders in which a volume without a disk may lie: the allowed ones, and the one that its PersistentVolume names as of the
 * last list, which may no longer be allowed. Asks nobody.
 *
 * @param own the folder in which it is known to have lain
 */
export function foldersOf(
  { settings, clusterView }: ControllerDeps,
  id: string,
  own?: string,
): readonly string[] {
  const others = [own, clusterView?.volumeContext(id)?.["volumePath"]].filter((one) => one !== undefined);
  return [...new Set([...settings.basePaths, ...others])];
}

/**
 * Concludes from a look without the disk that a volume does not exist.
 *
 * @throws {VolumeError} unavailable while an image of its name exists, or absence is not proven
 */
export function assertVolumeGone(deps: ControllerDeps, id: string, view: FileView): void {
  assertGone(id, ownFilePrefix(deps, id), view, foldersOf(deps, id), deps.settings.settleMs);
}

/** A volume of this cluster together with the look that showed it. */
export interface LoadedVolume {
  readonly view: VolumeView;
  /** Undefined only when the volume is provably gone. */
  readonly volume: OwnedVolume | undefined;
}

/**
 * Looks at a volume for a call that is going to change it. One command; one more when the legacy driver made it, two more
 * when it is imported now.
 *
 * @param claim what a disk without a record is to be imported as; without it such a disk is left alone
 * @throws {VolumeError} precondition when it is not this cluster's; unavailable when it is not there and that proves
 * nothing
 */
export async function loadForChange(
  call: ControllerCall,
  id: string,
  verb: string,
  claim?: ImportClaim,
): Promise<LoadedVolume> {
  const { view, stored } = await loadDisk(call, id, verb, claim);
  const volume = stored === undefined ? undefined : assertOwned(stored, call.settings.cluster, verb);
  return { view, volume };
}

/**
 * The same, whosever the disk is.
 *
 * @throws {VolumeError} precondition when it leaves a doubt; unavailable when it is not there and that proves nothing
 */
export async function loadDisk(
  call: ControllerCall,
  id: string,
  verb: string,
  claim?: ImportClaim,
): Promise<{ readonly view: VolumeView; readonly stored: StoredVolume | undefined }> {
  const view = await call.store.view(id, ownFilePrefix(call, id), call.context);
  assertNotForeign(view.foreign, verb);
  if (view.volume === undefined) {
    assertVolumeGone(call, id, view);
    return { view, stored: undefined };
  }
  call.memory.known.noteImage(view.volume, view);
  const stored = claim === undefined
    ? await migrateFirst(call, view, view.volume)
    : await importFirst(call, view.volume, claim) ??
      await migrateFirst(call, view, view.volume);
  return { view: { ...view, volume: stored }, stored };
}

/**
 * The same, with the files and the other disks of its image: where it was imported the name of that tells nothing, so that
 * it has to be looked for by its path. No command for any other volume, else one.
 *
 * @throws {VolumeError} precondition when the image is not there; busy when the disk is gone or another one meanwhile
 */
export async function withImage(
  call: ControllerCall,
  { view, volume }: LoadedVolume,
  verb: string,
): Promise<LoadedVolume> {
  if (volume === undefined || !isImported(volume.record)) return { view, volume };
  const { id, imagePath } = volume.stored;
  assertOwnImage(call, volume, verb);
  assertPoolMounted(view, imagePath);
  const again = await call.store.view(id, imagePath, call.context);
  assertPoolMounted(again, imagePath);
  if (again.volume?.comment !== volume.stored.comment) {
    throw new VolumeError(
      "busy",
      `Cannot ${verb} the volume because its record was changed at the same time: volume=${id}; try again`,
    );
  }
  const { sizeBytes } = again.volume;
  const image = again.files.find((file) => file.path === imagePath && !file.directory);
  const reason = image === undefined
    ? `its image does not exist: path=${imagePath}`
    : image.sizeBytes < sizeBytes
    ? `its image is smaller than its disk: file=${image.sizeBytes} disk=${sizeBytes}`
    : undefined;
  if (reason !== undefined) {
    throw new VolumeError("precondition", `Cannot ${verb} the volume because ${reason}: volume=${id}`);
  }
  return { view: again, volume: assertOwned(again.volume, call.settings.cluster, verb) };
}

/**
 * Refuses a volume whose image another disk uses too.
 *
 * @throws {VolumeError} precondition when there is such a disk
 */
export function assertNotShared(deps: ControllerDeps, id: string, view: VolumeView, verb: string): void {
  const filePrefix = ownFilePrefix(deps, id);
  const isOwn = ({ imagePath }: StoredVolume) =>
    imagePath === view.volume?.imagePath ||
    (isImageOf(imagePath, filePrefix) && deps.settings.basePaths.includes(baseOf(imagePath, filePrefix)));
  const sharer = view.sharers.find(isOwn);
  if (sharer === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because another disk uses its image: volume=${id} disk=${sharer.id} path=${sharer.imagePath}`,
  );
}

/**
 * Refuses a volume whose disk uses another file than its own. A disk that was copied on the router carries the record of
 * the one it was copied from, and would be a second way to that one's image.
 *
 * @throws {VolumeError} precondition when it does
 */
export function assertOwnImage(deps: ControllerDeps, volume: OwnedVolume, verb: string): void {
  const { id, imagePath } = volume.stored;
  if (usesOwnImage(volume, deps.settings.cluster)) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because its disk uses a file of another name: volume=${id} path=${imagePath}; ` +
      "check what that file holds",
  );
}

/**
 * Refuses a volume whose image cannot be used as this volume's alone: another disk reaches it too, it is another one's, or it
 * is not there now, so that whatever answers under its name has none of its data; or the router itself uses it.
 *
 * @throws {VolumeError} precondition; unavailable while its pool is not mounted
 */
export function assertImageUsable(
  deps: ControllerDeps,
  volume: OwnedVolume,
  view: VolumeView,
  verb: string,
): void {
  assertNotShared(deps, volume.stored.id, view, verb);
  assertOwnImage(deps, volume, verb);
  assertPoolMounted(view, volume.stored.imagePath);
  assertNotUsedByRouter(volume.stored, verb);
}

/**
 * Refuses a volume whose image is not there: after a reboot that lost the router's latest configuration, the disk of a
 * deleted volume is back, and its image is not. Of an imported volume the name of the image tells nothing.
 *
 * @throws {VolumeError} unavailable while the router does not show the image
 */
export function assertImageShown(
  { stored, record }: OwnedVolume,
  view: Pick<VolumeView, "pools" | "upMs" | "files">,
  verb: string,
): void {
  const { id, imagePath } = stored;
  assertPoolMounted(view, imagePath);
  if (isImported(record) || view.files.some(({ path }) => path === imagePath)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot ${verb} the volume because the router does not show its image: volume=${id} path=${imagePath}`,
  );
}

/**
 * How much a volume may hold, in bytes: what its disk has, or its image where that is larger, as the router forgot that the disk
 * had grown. A router that is given less for the disk cuts the image.
 */
export function heldBytes(
  { imagePath, sizeBytes }: StoredVolume,
  { files }: Pick<FileView, "files">,
): bigint {
  const imageBytes = files.find(({ path }) => path === imagePath)?.sizeBytes ?? 0n;
  return imageBytes > sizeBytes ? imageBytes : sizeBytes;
}

/**
 * Refuses a volume that somebody else made.
 *
 * @throws {VolumeError} precondition saying what to do instead
 */
export function assertNotImported({ stored, record }: OwnedVolume, verb: string, advice: string): void {
  if (!isImported(record)) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because it was imported: volume=${stored.id} path=${stored.imagePath}; ${advice}`,
  );
}

/** The error for a volume that is provably not there. */
export function notFound(verb: string, id: string): VolumeError {
  return new VolumeError("not-found", `Cannot ${verb} the volume because there is none: volume=${id}`);
}

/**
 * A look at a disk that is there, whosever it is.
 *
 * @throws {VolumeError} not-found, unavailable; precondition when it is not file-backed
 */
export async function readAt(
  call: ControllerCall,
  id: string,
  verb: string,
): Promise<VolumeView & { readonly volume: NonNullable<VolumeView["volume"]> }> {
  const view = await call.store.view(id, ownFilePrefix(call, id), call.context);
  assertNotForeign(view.foreign, verb);
  if (view.volume !== undefined) return { ...view, volume: view.volume };
  assertVolumeGone(call, id, view);
  throw notFound(verb, id);
}
