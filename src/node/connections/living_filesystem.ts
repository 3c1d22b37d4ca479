import { VolumeError } from "../../volume/errors.ts";
import type { DeviceUser } from "../../volume/model/host/device_user.ts";
import type { Intent, StagingState } from "../../volume/model/staging/state.ts";
import type { DeviceNode, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";
import { readChain } from "../chain/chain.ts";
import { mountPointOf } from "../mount_table.ts";
import { proveStaged } from "./device.ts";
import { unmountLast } from "./last_unmount.ts";

/**
 * Ends a file system that lives on without a mount, because it was frozen when it was unmounted: mounts it at the staging
 * path, thaws and unmounts it. Only where every mount namespace was searched and none has it: a backup from one of those
 * may have frozen it, and would be torn.
 *
 * @param users of the device, found once the volume's own mounts were gone
 * @returns whether that was done; the file system may still live
 */
export async function endLivingFilesystem(
  deps: NodeDeps,
  stagingState: StagingState | undefined,
  device: DeviceNode,
  users: readonly DeviceUser[],
  context: CallContext,
): Promise<boolean> {
  const isAlone = users.every((user) =>
    user.by === "superblock" && user.device === device.path && user.hidden.length === 0
  );
  if (users.length === 0 || !isAlone || stagingState === undefined || stagingState.intent.kind === "block") {
    return false;
  }
  const release = await deps.devices.hold(device, context);
  try {
    const { used: found } = await readChain(deps, stagingState.intent.nqn, context);
    if (found?.deviceNumber !== device.deviceNumber) return false;
    await mountAndEnd(
      deps,
      stagingState.intent,
      await proveStaged(deps, found, stagingState, context),
      context,
    );
    return true;
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    const { volumeId } = stagingState;
    deps.notes?.warn("cannot end a file system that lives without a mount", {
      volumeId,
      reason: error.message,
    });
    return false;
  } finally {
    await release();
  }
}

async function mountAndEnd(
  deps: NodeDeps,
  { kind, stagingPath, readOnly, mountFlags: flags }: Intent,
  device: ProvenDevice,
  context: CallContext,
): Promise<void> {
  if (kind === "block") return;
  const isOwnFolder = await deps.paths.info(stagingPath, context) === undefined;
  if (isOwnFolder) await deps.paths.makeFolder(stagingPath, 0o750);
  const mountPoint = await mountPointOf(deps, stagingPath);
  try {
    // Where this call is killed, the next stage uses the mount as it is.
    try {
      await deps.mounts.mountDevice(device, mountPoint, kind, { readOnly, flags }, context);
    } catch (error) {
      // After errors the kernel may have turned it read-only, and then mounts it in no other way.
      if (readOnly || !VolumeError.is(error, "precondition")) throw error;
      await deps.mounts.mountDevice(device, mountPoint, kind, { readOnly: true, flags }, context);
    }
  } finally {
    await unmountLast(deps, mountPoint, context);
    if (isOwnFolder) await deps.paths.removeEmptyFolder(stagingPath);
  }
}
