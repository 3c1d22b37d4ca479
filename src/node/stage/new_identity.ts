import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FoundDevice, ProvenDevice } from "../../volume/ports/node_ports.ts";
import { isCertain } from "../../volume/model/host/device_user.ts";
import { usableBytes } from "../../volume/model/encryption.ts";
import { seenDevice, type StagingState } from "../../volume/model/staging/state.ts";
import { awaitDevice } from "../connections/device.ts";
import { refuseUsers } from "../connections/observe.ts";
import { mountsAt } from "../mount_table.ts";
import { findMultipath } from "../chain/chain.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Finds the device of a connected subsystem. A kernel that met a new identity has dropped the device and keeps the
 * connection; it looks for the device again only after a rescan.
 *
 * @throws {VolumeError} unavailable when no device appears
 */
export async function findStaged(
  deps: NodeDeps,
  nqn: string,
  wasConnected: boolean,
  context: CallContext,
): Promise<FoundDevice> {
  const isDropped = wasConnected && await deps.connector.find(nqn, context) === undefined;
  if (isDropped) await deps.connector.rescan(nqn, context);
  return await awaitDevice(deps, nqn, context);
}

/**
 * Whether a device has come back with another unique id than recorded in the same epoch, for example after the reboot
 * of a router that gives its exports new ones.
 */
export function isRenewed(stagingState: StagingState, found: FoundDevice): boolean {
  const known = seenDevice(stagingState)?.uniqueId ?? "";
  return known !== "" && found.uniqueId !== "" && known !== found.uniqueId;
}

/**
 * Throws unless such a device can be taken for the volume. Its NQN names one epoch of one volume; NQN and namespace id
 * are compared when the device is proven.
 *
 * @throws {VolumeError} identity-mismatch when its size is not one that the volume may have; in-use while pods use the
 *   earlier device, or something has this one open
 */
export async function assertRenewable(
  deps: NodeDeps,
  stagingState: StagingState,
  found: FoundDevice,
  context: CallContext,
): Promise<void> {
  const { volumeId, intent: { namespaceBytes }, content: { header, begunOn }, here: { published } } =
    stagingState;
  const device = seenDevice(stagingState);
  const foundBytes = usableBytes(found.sizeBytes, header === "done");
  // It may have grown while this node was down; on what was begun here it must not.
  const mayHaveGrown = begunOn === undefined && device !== undefined;
  const isAsLarge = foundBytes === device?.sizeBytes || found.sizeBytes === namespaceBytes;
  if (!isAsLarge && !(mayHaveGrown && foundBytes > device.sizeBytes)) {
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the device because it is not the volume: device=${found.path} expected id=${device?.uniqueId} ` +
        `size=${device?.sizeBytes} found id=${found.uniqueId} size=${found.sizeBytes}`,
    );
  }
  // Users of a map have the device that came back, not the earlier one.
  if (await findMultipath(deps, found.nqn) !== undefined) return;
  const table = await deps.mounts.table();
  for (const { targetPath } of published) {
    if (mountsAt(table, await deps.paths.mountPoint(targetPath)).length > 0) {
      throw new VolumeError(
        "in-use",
        `Cannot stage the volume because its router gave it a new identity while a pod has it: volume=${volumeId} ` +
          `path=${targetPath}; delete the pods that use it`,
      );
    }
  }
  refuseUsers("stage", volumeId, (await deps.devices.openBy([found], context)).filter(isCertain));
}

/**
 * Compares the file system on a device that came back with another unique id with the recorded one.
 *
 * @param uuid the file system's UUID from blkid; undefined when there is none
 * @throws {VolumeError} identity-mismatch when it is another one
 */
export function assertSameFilesystem(
  { volumeId, content: { filesystemUuid } }: StagingState,
  { path }: ProvenDevice,
  uuid: string | undefined,
): void {
  if (filesystemUuid === undefined || uuid === filesystemUuid) return;
  throw new VolumeError(
    "identity-mismatch",
    `Cannot use the device because it is not the volume: device=${path} volume=${volumeId} ` +
      `expected file system=${filesystemUuid} found ${uuid ?? "none"}`,
  );
}
