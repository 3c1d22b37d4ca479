import { VolumeError } from "../../volume/errors.ts";
import { describeUser, type DeviceUser } from "../../volume/model/host/device_user.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";
import { isOnBlockDevice, mountsAt } from "../mount_table.ts";

/**
 * Unmounts a file system that is published to no pod any more. A backup may have frozen it and gone: the kernel would keep such a file
 * system without its last mount, claim the device for good, and let every write of the next mount wait.
 */
export async function unmountLast(deps: NodeDeps, mountPoint: string, context: CallContext): Promise<void> {
  const mounted = mountsAt(await deps.mounts.table(), mountPoint);
  if (mounted.some(isOnBlockDevice)) await thaw(deps, mountPoint, context);
  await deps.mounts.unmount(mountPoint, context);
}

/** Thaws a file system that is about to be unmounted; a failure is only logged. */
async function thaw(deps: NodeDeps, mountPoint: string, context: CallContext): Promise<void> {
  try {
    await thawForPods(deps, mountPoint, context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    deps.notes?.warn("cannot find whether a file system is frozen", { mountPoint, reason: error.message });
  }
}

/**
 * Thaws a file system that no pod has and the next one is to get: every write to a frozen one waits. Whether it is frozen can
 * only be found by thawing it.
 *
 * @param others uses of it in other mount namespaces, from which a backup may have frozen it
 * @throws {VolumeError} unavailable, deadline when it may still be frozen
 */
export async function thawForPods(
  deps: NodeDeps,
  mountPoint: string,
  context: CallContext,
  others: readonly DeviceUser[] = [],
): Promise<void> {
  if (!await deps.mounts.thaw(mountPoint, context)) return;
  const names = others.map((user) => describeUser(user).words).join(", and ");
  deps.notes?.warn("thawed a file system that was frozen, and that is published to no pod", {
    mountPoint,
    ...names === "" ? {} : { usedBy: names },
  });
}
