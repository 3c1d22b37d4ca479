import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { withoutPublished } from "../../volume/model/staging/here.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { readChain } from "../chain/chain.ts";
import { unmountLast } from "../connections/last_unmount.ts";
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
  const left = await forgetTarget(deps, request);
  if (left !== undefined) await unmountDead(deps, left, context);
}

/**
 * A damaged state file must not keep a pod from ending; other calls will report it.
 *
 * @returns what is on record of the volume then
 */
async function forgetTarget(
  { stagingStore }: NodeDeps,
  request: UnpublishRequest,
): Promise<StagingState | undefined> {
  const stagingState = await stagingStore.findUndamaged(request.volumeId);
  if (!stagingState?.here.published.some((target) => target.targetPath === request.targetPath)) {
    return stagingState;
  }
  return await stagingStore.write({
    ...stagingState,
    here: withoutPublished(stagingState.here, request.targetPath),
  });
}

/**
 * Unmounts the staged file system of a device that is gone, once no pod has it: a kubelet that has started since stages over no
 * folder that it cannot read, as that of a dead xfs, and unstages it only when no other pod waits for it. A failure is only
 * logged, because the pod has ended all the same.
 */
async function unmountDead(deps: NodeDeps, left: StagingState, context: CallContext): Promise<void> {
  try {
    const mountPoint = await findDead(deps, left, context);
    if (mountPoint !== undefined) await unmountLast(deps, mountPoint, context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    const fields = { volumeId: left.volumeId, reason: error.message };
    deps.notes?.warn("cannot unmount a file system whose device is gone", fields);
  }
}

/** Where a file system is staged that no pod has and whose device is gone; undefined when there is none. */
async function findDead(
  deps: NodeDeps,
  { intent: { nqn, kind, stagingPath }, here: { device, published } }: StagingState,
  context: CallContext,
): Promise<string | undefined> {
  if (kind === "block" || device === undefined || published.length > 0) return undefined;
  const { map, used } = await readChain(deps, nqn, context);
  if (map?.kind === "multipath" || used?.deviceNumber === device.deviceNumber) return undefined;
  const mountPoint = await deps.paths.mountPoint(stagingPath);
  const table = await deps.mounts.table();
  const [top, ...others] = mountsAt(table, mountPoint);
  const all = table.filter((entry) => entry.deviceNumber === device.deviceNumber);
  // Another device may have got the number; the volume that has it is mounted elsewhere, too.
  return others.length === 0 && all.length === 1 && all[0] === top ? mountPoint : undefined;
}
