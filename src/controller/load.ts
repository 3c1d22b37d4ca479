import { assertGone, assertPoolMounted } from "../volume/rules/absence.ts";
import { VolumeError } from "../volume/errors.ts";
import { isImported, usesOwnImage } from "../volume/model/sources.ts";
import type { ImportClaim } from "../volume/rules/import.ts";
import { baseOf, filePrefixOf, isImageOf } from "../volume/model/image_names.ts";
import type { OwnedVolume } from "../volume/model/record.ts";
import { assertNotUsedByRouter } from "../volume/rules/router_uses.ts";
import { assertNotForeign, assertOwned, judgeOwnership } from "../volume/rules/ownership.ts";
import type { FileView, StoredVolume, VolumeView } from "../volume/model/inventory.ts";
import { changedMeanwhile } from "./not_done.ts";
import { readSlot, type View } from "./records/view.ts";
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

/**
 * Reads a volume, whosever it is, for a call that is going to change it. One command; one more when the legacy driver made it,
 * two more when it is imported now.
 *
 * @param claim what a disk without a record is to be imported as; without it such a disk is left alone
 * @throws {VolumeError} precondition when it leaves a doubt; unavailable when it is not there and that proves nothing
 */
export async function readView(
  call: ControllerCall,
  id: string,
  verb: string,
  claim?: ImportClaim,
): Promise<View> {
  const view = await readSlot(call, id);
  const { volume: stored } = view;
  assertNotForeign(view.foreign, verb);
  if (stored === undefined) {
    assertVolumeGone(call, id, view);
    return view;
  }
  call.memory.known.noteImage(stored, view);
  return { ...view, volume: await call.takeOver(call, view, stored, claim) };
}

/**
 * Reads a volume of this cluster for whoever exports it. One command more than {@linkcode readView} when it was imported.
 *
 * @throws {VolumeError} as `readView()` does; precondition when it is not this cluster's, or its image is not there
 */
export async function readOwnView(
  call: ControllerCall,
  id: string,
  verb: string,
  claim?: ImportClaim,
): Promise<View> {
  const view = await readView(call, id, verb, claim);
  if (view.volume !== undefined) assertOwned(view.volume, call.settings.cluster, verb);
  return await withImage(call, view, verb);
}

/**
 * The same view with the files and the other disks of an imported volume's image: the name of that tells nothing, so that it has
 * to be looked for by its path. No command for any other volume, else one.
 *
 * @throws {VolumeError} precondition when the image is not there; busy when the disk is gone or another one meanwhile
 */
export async function withImage(call: ControllerCall, view: View, verb: string): Promise<View> {
  const { cluster } = call.settings;
  const owner = view.volume && judgeOwnership(view.volume, cluster);
  if (owner?.state !== "owned" || !isImported(owner.volume.record)) return view;
  const { id, imagePath, comment } = owner.volume.stored;
  assertOwnImage(call, owner.volume, verb);
  assertPoolMounted(view, imagePath);
  const again = await call.store.view(id, imagePath, call.context);
  assertPoolMounted(again, imagePath);
  if (again.volume?.comment !== comment) throw changedMeanwhile(verb, id);
  const { sizeBytes } = assertOwned(again.volume, cluster, verb).stored;
  const image = again.files.find((file) => file.path === imagePath && !file.directory);
  const reason = image === undefined
    ? `its image does not exist: path=${imagePath}`
    : image.sizeBytes < sizeBytes
    ? `its image is smaller than its disk: file=${image.sizeBytes} disk=${sizeBytes}`
    : undefined;
  if (reason !== undefined) {
    throw new VolumeError("precondition", `Cannot ${verb} the volume because ${reason}: volume=${id}`);
  }
  return { ...view, ...again };
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

/** The error for a volume that is provably not there. */
export function notFound(verb: string, id: string): VolumeError {
  return new VolumeError("not-found", `Cannot ${verb} the volume because there is none: volume=${id}`);
}
