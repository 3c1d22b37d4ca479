import { VolumeError } from "../../volume/errors.ts";
import type { DirectoryHandle } from "../../volume/model/directory/handle.ts";
import { isInside, serverHash } from "../../volume/model/directory/handle.ts";
import { deletedPath, isMarked, markedName } from "../../volume/model/directory/names.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { assertSettled } from "../../volume/rules/absence.ts";
import { assertNothingElseIn, getShareDisk } from "../../volume/rules/directory_share.ts";
import { type DirectoryDeps, type DirectorySettings, shareOf } from "./deps.ts";

/**
 * Deletes a directory: renames it, so that no node can mount it any more, and leaves the removal of its content to the
 * background. Two commands. One that is provably not there counts as deleted, unless its handle was made for other addresses than
 * the controller's, or another disk than is mounted: then it may be there.
 *
 * @throws {VolumeError} precondition when it is not this cluster's, lies outside the base paths, holds another disk, or is
 *   not there and may be elsewhere; unavailable while its share is not mounted, or disks may be missing after a boot
 */
export async function deleteDirectory(
  deps: DirectoryDeps,
  { hash, path, name }: DirectoryHandle,
  context: CallContext,
): Promise<void> {
  assertOwn(deps.settings, path, name);
  const view = await deps.store.find([path], context);
  const { filesystemUuid } = getShareDisk(view, shareOf(deps.settings));
  const found = view.entries.find((entry) => entry.path === path);
  assertSettled(view, deps.settings.settleMs);
  if (found === undefined) {
    if (serverHash(deps.settings.addresses, filesystemUuid) === hash || deps.removals.has(path)) return;
    const { entries } = await deps.store.find([path], context, path);
    // It may have come back since, beside an earlier one of its name that was deleted.
    const wasDeletedHere = entries.length > 0 && entries.every((entry) => entry.path !== path);
    if (!wasDeletedHere) throw notOfThisServer(path);
    return;
  }
  if (!found.directory) throw refused(path, "it is no directory");
  assertNothingElseIn(view, path, deps.settings.settleMs);
  const to = deletedPath(path, deps.random.bytes(4).toHex());
  const { after, refusal } = await deps.store.rename(path, to, context).catch((error) => {
    deps.inDoubt.remember(path, "");
    throw error;
  });
  const paths = after.entries.map((entry) => entry.path);
  const isRenamed = !paths.includes(path) && paths.includes(to);
  if (!isRenamed) deps.inDoubt.remember(path, "");
  getShareDisk(after, shareOf(deps.settings));
  if (!isRenamed) {
    const reason = refusal === undefined ? "it is not renamed" : `the router refused: ${refusal}`;
    throw new VolumeError("unavailable", `Cannot delete the directory because ${reason}: path=${path}`);
  }
  deps.removals.add(to);
}

/**
 * Checks that a directory is one that this cluster has made below an allowed folder.
 *
 * @throws {VolumeError} precondition when it is not
 */
export function assertOwn({ basePaths, cluster }: DirectorySettings, path: string, name: string): void {
  const base = basePaths.find((one) => isInside(path, one) && path !== one);
  if (base === undefined) {
    throw refused(path, `it is outside of ${basePaths.join(" and ")} (--base-path)`);
  }
  const names = path.slice(base.length + 1).split("/");
  if (names.pop() !== markedName(name, cluster)) throw refused(path, "it does not carry this cluster's mark");
  if (names.some(isMarked)) throw refused(path, "it is in a volume");
}

/** A StorageClass may name the server by other addresses; then only a lost answer and a restart lead here. */
function notOfThisServer(path: string): VolumeError {
  return refused(
    path,
    "it is not there, and was made at a server with other addresses, or on another disk: if it is there, delete it there; " +
      "then remove the finalizers of its PersistentVolume",
  );
}

function refused(path: string, why: string): VolumeError {
  return new VolumeError("precondition", `Cannot delete the directory because ${why}: path=${path}`);
}
