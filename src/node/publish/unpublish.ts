import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { withoutPublished } from "../../volume/model/staging_state.ts";
import { mountsAt } from "../mount_table.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { assertMayUnmount } from "./target_paths.ts";
import { StagingStore } from "../stage/staging_store.ts";
import type { NodeDeps } from "../deps.ts";

/** What NodeUnpublishVolume asks for. */
export interface UnpublishRequest {
  readonly volumeId: string;
  readonly targetPath: string;
}

/**
 * Takes a volume away from a workload: unmounts, verifies, and removes the target if it is an empty file or an empty
 * folder; nothing else is ever removed. It needs neither the device nor the state file. What is fenced and busy is cut
 * off, so that who hangs on it ends, and the next call goes through.
 *
 * @throws {VolumeError} in-use when the target is busy, precondition when there is something at it or in it that is not
 * the volume
 */
export async function unpublishVolume(
  deps: NodeDeps,
  fencing: Fencing,
  request: UnpublishRequest,
  context: CallContext,
): Promise<void> {
  const { targetPath } = request;
  const stagingStore = new StagingStore(deps);
  const mountPoint = await deps.paths.mountPoint(targetPath);
  const mounted = mountsAt(await deps.mounts.table(), mountPoint);
  if (mounted.length > 0) await assertMayUnmount(deps, stagingStore, request, mounted, context);
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
  await forgetTarget(stagingStore, request);
}

/** A damaged state file must not keep a pod from ending; whoever needs it will complain. */
async function forgetTarget(stagingStore: StagingStore, request: UnpublishRequest): Promise<void> {
  const stagingState = await stagingStore.findUndamaged(request.volumeId);
  if (stagingState?.published.some((target) => target.targetPath === request.targetPath)) {
    await stagingStore.write(withoutPublished(stagingState, request.targetPath));
  }
}
