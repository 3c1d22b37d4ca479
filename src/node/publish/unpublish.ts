import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { withoutPublished } from "../../volume/model/staging/here.ts";
import { mountsAt } from "../mount_table.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { assertMayUnmount } from "./target_paths.ts";
import type { NodeDeps } from "../deps.ts";

/** The fields of NodeUnpublishVolume. */
export interface UnpublishRequest {
  readonly volumeId: string;
  readonly targetPath: string;
}

/**
 * Removes a volume from a workload: unmounts, verifies, and removes the target if it is an empty file or an empty
 * folder; it never removes anything else. It needs neither the device nor the state file. It disconnects a volume that
 * is fenced and busy, so that processes waiting on it end and the next call succeeds.
 *
 * @throws {VolumeError} in-use when the target is busy, precondition when something other than the volume is at it or
 *   in it
 */
export async function unpublishVolume(
  deps: NodeDeps,
  fencing: Fencing,
  request: UnpublishRequest,
  context: CallContext,
): Promise<void> {
  const { targetPath } = request;
  const mountPoint = await deps.paths.mountPoint(targetPath);
  const mounted = mountsAt(await deps.mounts.table(), mountPoint);
  if (mounted.length > 0) await assertMayUnmount(deps, request, mounted, context);
  try {
    await deps.mounts.unmount(mountPoint, context);
  } catch (error) {
    if (VolumeError.is(error, "in-use")) {
      await fencing.forceDisconnectPastLock(request.volumeId, context, targetPath);
    }
    throw error;
  }
  const info = await deps.paths.info(targetPath, context);
  if (info?.kind === "directory") await deps.paths.removeEmptyFolder(targetPath);
  else if (info?.kind === "file") await deps.paths.removeEmptyFile(targetPath);
  else if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot remove the target because it is neither a file nor a folder: volume=${request.volumeId} path=${targetPath}`,
    );
  }
  await forgetTarget(deps, request);
}

/** A damaged state file must not keep a pod from ending; other calls will report it. */
async function forgetTarget({ stagingStore }: NodeDeps, request: UnpublishRequest): Promise<void> {
  const stagingState = await stagingStore.findUndamaged(request.volumeId);
  if (stagingState?.here.published.some((target) => target.targetPath === request.targetPath)) {
    await stagingStore.write({
      ...stagingState,
      here: withoutPublished(stagingState.here, request.targetPath),
    });
  }
}
