import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isNfs } from "../../volume/rules/host/nfs_mounts.ts";
import { mountsAt } from "../../volume/rules/host/mounts_at.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import type { SharedMounts } from "./shared_mounts.ts";

/** A path of a volume, as a call names it. */
export interface VolumePath {
  readonly volumeId: string;
  readonly path: string;
}

/**
 * Removes a directory from a workload: writes what the kernel still holds, unmounts, and removes the target if it is an
 * empty folder; it never removes anything else. The share is unmounted if no other target uses it. A server that does
 * not answer holds nothing up: the mounts are detached.
 *
 * @throws {VolumeError} in-use when the target is busy; unavailable when writing takes long and the server answers;
 *   precondition when something else is mounted at it, or it is no folder
 */
export async function unpublishDirectory(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  volume: VolumePath,
  context: CallContext,
): Promise<void> {
  await unmountDirectory(deps, shares, volume, context);
  const info = await deps.paths.info(volume.path, context);
  if (info?.kind === "directory") await deps.paths.removeEmptyFolder(volume.path);
  else if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot remove the target because it is no folder: volume=${volume.volumeId} path=${volume.path}`,
    );
  }
  await shares.releaseUnused(context);
}

async function unmountDirectory(
  { nfs, paths, notes }: DirectoryNodeDeps,
  shares: SharedMounts,
  { volumeId, path }: VolumePath,
  context: CallContext,
): Promise<void> {
  const mountPoint = await paths.mountPoint(path);
  const folder = await shares.folder();
  const mounted = mountsAt(await nfs.table(), mountPoint);
  const foreign = mounted.find((entry) => !isNfs(entry));
  if (foreign !== undefined || mountPoint === folder || mountPoint.startsWith(`${folder}/`)) {
    throw new VolumeError(
      "precondition",
      `Cannot unpublish the volume because something else is mounted there: volume=${volumeId} path=${path} ` +
        `type=${foreign?.filesystem ?? "a share of this driver"}`,
    );
  }
  if (mounted.length === 0) return;
  const written = await nfs.flush(mountPoint, context);
  const outcome = await nfs.unmount(mountPoint, context);
  if (written === "written" && outcome === "unmounted") return;
  notes.warn("a directory was unmounted, and its server may not have all that was written", {
    volumeId,
    path,
    written,
    outcome,
  });
}
