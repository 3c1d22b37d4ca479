import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { withoutPublished } from "../../volume/model/staging_state.ts";
import { mountsAt } from "../mount_table.ts";
import { assertMayUnmount } from "./target_paths.ts";
import { Stashes } from "../stage/staging_store.ts";
import type { NodeWorld } from "../deps.ts";

/** What NodeUnpublishVolume asks for. */
export interface UnpublishRequest {
  readonly volumeId: string;
  readonly targetPath: string;
}

/**
 * Takes a volume away from a workload: unmounts, verifies, and removes the target if it is an empty file or an empty
 * folder; nothing else is ever removed. It needs neither the device nor the state file.
 *
 * @throws {VolumeError} in-use when the target is busy, precondition when there is something at it or in it that is not
 * the volume
 */
export async function unpublishVolume(
  world: NodeWorld,
  request: UnpublishRequest,
  context: CallContext,
): Promise<void> {
  const { targetPath } = request;
  const stashes = new Stashes(world);
  const point = await world.paths.mountPoint(targetPath);
  const mounted = mountsAt(await world.mounts.table(), point);
  if (mounted.length > 0) await assertMayUnmount(world, stashes, request, mounted, context);
  await world.mounts.unmount(point, context);
  const info = await world.paths.info(targetPath, context);
  if (info?.kind === "directory") await world.paths.removeEmptyFolder(targetPath);
  else if (info?.kind === "file") await world.paths.removeEmptyFile(targetPath);
  else if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot remove the target as it is neither a file nor a folder: volume=${request.volumeId} path=${targetPath}`,
    );
  }
  await forgetTarget(stashes, request);
}

/** A damaged state file must not keep a pod from ending; whoever needs it will complain. */
async function forgetTarget(stashes: Stashes, request: UnpublishRequest): Promise<void> {
  const stash = await stashes.findUndamaged(request.volumeId);
  if (stash?.published.some((target) => target.targetPath === request.targetPath)) {
    await stashes.write(withoutPublished(stash, request.targetPath));
  }
}
