import { withDeadline } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parseDirectoryHandle } from "../../volume/model/directory/handle.ts";
import type { FilesystemStats, MountEntry } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isNfs, serverPath } from "../../volume/rules/host/nfs_mounts.ts";
import { mountsAt } from "../../volume/rules/host/mounts_at.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import type { VolumePath } from "./unpublish.ts";

/** How long all reads together may take. */
const limitMs = 15_000;

/**
 * Size and use of the share that a directory lies on: a directory has no size of its own.
 *
 * @throws {VolumeError} not-found when the directory is not at the path; unavailable when its server does not answer;
 *   deadline when the mount table does not
 */
export async function directoryStats(
  deps: DirectoryNodeDeps,
  volume: VolumePath,
  context: CallContext,
): Promise<FilesystemStats> {
  const what = `ask the volume for its size and use: volume=${volume.volumeId}`;
  return await withDeadline(deps.clock, context, limitMs, what, async (limited) => {
    const mountPoint = await getPlaced(deps, volume);
    try {
      return await deps.filesystems.stats(mountPoint, limited);
    } catch (error) {
      deps.events.occurred({ kind: "stale-mount", finder: "stats" });
      if (!VolumeError.is(error, "deadline")) throw error;
      throw new VolumeError(
        "unavailable",
        `Cannot ask the volume for its size and use because its server does not answer: volume=${volume.volumeId}`,
        { cause: error },
      );
    }
  });
}

/**
 * Returns the mount point of a volume that is at a path right now.
 *
 * @throws {VolumeError} not-found when it is not
 */
export async function getPlaced(deps: DirectoryNodeDeps, { volumeId, path }: VolumePath): Promise<string> {
  if (path.startsWith("/")) {
    const mountPoint = await deps.paths.mountPoint(path);
    const top = mountsAt(await deps.nfs.table(), mountPoint).at(-1);
    if (top !== undefined && isOfVolume(top, volumeId)) return mountPoint;
  }
  throw new VolumeError(
    "not-found",
    `Cannot find the volume at the path on this node: volume=${volumeId} path=${path}`,
  );
}

/** Whether the mount may be of that volume. The handle of a static volume says nothing about its directory. */
export function isOfVolume(entry: MountEntry, volumeId: string): boolean {
  const handle = parseDirectoryHandle(volumeId);
  return isNfs(entry) && (handle === undefined || serverPath(entry) === handle.path);
}
