import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isNfs } from "../../volume/rules/nfs_mounts.ts";
import { mountsAt } from "../../volume/rules/mounts_at.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import type { SharedMounts } from "./shared_mounts.ts";

/** A path of a volume, as a call names it. */
export interface VolumePath {
  readonly volumeId: string;
  readonly path: string;
}

/**
 * Unstages a directory: writes what the kernel still holds, unmounts, and unmounts the share if no other volume uses
 * it. A server that does not answer holds nothing up: the mounts are detached.
 *
 * @throws {VolumeError} in-use when the staging path is busy; unavailable when writing takes long and the server
 *   answers; precondition when something else is mounted there
 */
export async function unstageDirectory(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  volume: VolumePath,
  context: CallContext,
): Promise<void> {
  await unmountDirectory(deps, shares, volume, "unstage", context);
  await shares.releaseUnused(context);
}

/**
 * Removes a directory from a workload: unmounts, verifies, and removes the target if it is an empty folder; it never
 * removes anything else.
 *
 * @throws {VolumeError} in-use when the target is busy; precondition when something else is mounted at it or in it
 */
export async function unpublishDirectory(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  volume: VolumePath,
  context: CallContext,
): Promise<void> {
  await unmountDirectory(deps, shares, volume, "unpublish", context);
  const info = await deps.paths.info(volume.path, context);
  if (info?.kind === "directory") await deps.paths.removeEmptyFolder(volume.path);
  else if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot remove the target because it is no folder: volume=${volume.volumeId} path=${volume.path}`,
    );
  }
  // The staging path may have been unmounted before, by hand.
  await shares.releaseUnused(context);
}

async function unmountDirectory(
  { nfs, paths, notes }: DirectoryNodeDeps,
  shares: SharedMounts,
  { volumeId, path }: VolumePath,
  verb: "unstage" | "unpublish",
  context: CallContext,
): Promise<void> {
  const mountPoint = await paths.mountPoint(path);
  const folder = await shares.folder();
  const mounted = mountsAt(await nfs.table(), mountPoint);
  const foreign = mounted.find((entry) => !isNfs(entry));
  if (foreign !== undefined || mountPoint === folder || mountPoint.startsWith(`${folder}/`)) {
    throw new VolumeError(
      "precondition",
      `Cannot ${verb} the volume because something else is mounted there: volume=${volumeId} path=${path} ` +
        `type=${foreign?.filesystem ?? "a share of this driver"}`,
    );
  }
  if (mounted.length === 0) return;
  const written = verb === "unstage" ? await nfs.flush(mountPoint, context) : "written";
  const outcome = await nfs.unmount(mountPoint, context);
  if (written === "written" && outcome === "unmounted") return;
  notes.warn("a directory was unmounted, and its server may not have all that was written", {
    volumeId,
    path,
    written,
    outcome,
  });
}
