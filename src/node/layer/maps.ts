import { VolumeError } from "../../volume/errors.ts";
import {
  isEncryptionUuid,
  isOwnMapUuid,
  mapName,
  mapUuid,
  nqnOfMapUuid,
} from "../../volume/model/device_layer.ts";
import { type DeviceUser, inUse } from "../../volume/model/host/device_user.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { DeviceMap, MapIdentity } from "../../volume/ports/device_maps.ts";
import type { DeviceNode, FoundDevice } from "../../volume/ports/node_ports.ts";
import type { StagingState } from "../../volume/model/staging_state.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { keepersOf } from "../../volume/rules/host/device_users.ts";
import type { NodeDeps } from "../deps.ts";

/** The name and UUID of the map of an export; undefined for an NQN that does not belong to this driver. */
export function mapIdentity(deps: NodeDeps, nqn: string): MapIdentity | undefined {
  const { nqnPrefix } = deps.settings;
  const name = parseExportNqn(nqn, nqnPrefix);
  if (name === undefined) return undefined;
  return { name: mapName(name.volumeId), uuid: mapUuid(nqn, nqnPrefix) };
}

/** Finds the map of an export; undefined when there is none. A map of another epoch of the volume does not count. */
export async function findMap(deps: NodeDeps, nqn: string): Promise<DeviceMap | undefined> {
  const identity = deps.maps && mapIdentity(deps, nqn);
  if (identity === undefined) return undefined;
  const map = await deps.maps!.find(identity.name);
  return map?.uuid === identity.uuid ? map : undefined;
}

/**
 * Finds the map between a volume and its users: the map of its export, or the mapping of an encrypted volume, which has
 * the same name in every epoch; undefined when there is none.
 */
async function mapAbove(deps: NodeDeps, nqn: string): Promise<DeviceMap | undefined> {
  const identity = deps.maps && mapIdentity(deps, nqn);
  if (identity === undefined) return undefined;
  const map = await deps.maps!.find(identity.name);
  return map !== undefined && (map.uuid === identity.uuid || isEncryptionUuid(map.uuid)) ? map : undefined;
}

/** The NQN of the volume's map, of any epoch; undefined when the volume has none. */
export async function mappedNqn(deps: NodeDeps, volumeId: string): Promise<string | undefined> {
  const map = await deps.maps?.find(mapName(volumeId));
  if (map === undefined || !isOwnMapUuid(map.uuid)) return undefined;
  return nqnOfMapUuid(map.uuid, deps.settings.nqnPrefix);
}

/**
 * Finds the device through which a volume is used: its map where it has one, else the namespace itself. Returns
 * undefined while there is no namespace, and while the map is on another device than the namespace of the NQN.
 */
export async function findDevice(
  deps: NodeDeps,
  nqn: string,
  context: CallContext,
): Promise<FoundDevice | undefined> {
  const found = await deps.connector.find(nqn, context);
  const map = await mapAbove(deps, nqn);
  if (map === undefined || found === undefined) return found;
  return isOn(map, found) ? onMap(map, found) : undefined;
}

/** Whether the map is active, and on that device alone. */
export function isOn(map: DeviceMap, { deviceNumber }: DeviceNode): boolean {
  return !map.suspended && map.below.length === 1 && map.below[0] === deviceNumber;
}

/** Returns the map as the found device, with the NQN and the identity of the device below it. */
export function onMap({ path, deviceNumber, sizeBytes }: DeviceMap, below: FoundDevice): FoundDevice {
  return { ...below, path, deviceNumber, sizeBytes };
}

/** The device node through which a volume is used, proven or not: its map where it has one, even without a path. */
export async function usedNode(
  deps: NodeDeps,
  nqn: string,
  context: CallContext,
): Promise<DeviceNode | undefined> {
  return await mapAbove(deps, nqn) ?? await deps.connector.find(nqn, context);
}

/** Whether writes to the volume would wait for a missing device. */
export async function isQueueing(deps: NodeDeps, nqn: string, context: CallContext): Promise<boolean> {
  const map = await findMap(deps, nqn);
  if (map === undefined || await findDevice(deps, nqn, context) !== undefined) return false;
  return map.sizeBytes > 0n && (await deps.maps!.table(map, context)).queues;
}

/** Lets I/O that waits for a missing device fail from now on. OK when there is no map. */
export async function endQueueing(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  const map = await findMap(deps, nqn);
  if (map !== undefined) await deps.maps!.endQueueing(map, context);
}

/**
 * Removes the map of an unused export, and all I/O that waits in it. OK when there is none. It does not end queueing
 * before: the kernel removes no open map, and the process that has it open would lose the waiting I/O.
 *
 * @throws {VolumeError} in-use, naming the user, while it is in use
 */
export async function removeMap(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  const map = await findMap(deps, nqn);
  if (map === undefined) return;
  try {
    await deps.maps!.remove(map, context);
  } catch (error) {
    if (!VolumeError.is(error, "in-use")) throw error;
    throw inUse(await keepersOf(deps, map, context), (users) => `${error.message} because ${users}`);
  }
}

/** Whether the volume may have a map: its own, or the mapping of an encrypted one. */
export function mayHaveMap({ layer, luks }: StagingState): boolean {
  return layer !== undefined || luks !== undefined;
}

/**
 * What this node has made of the namespace below a map besides that map, as its own multipath does.
 *
 * @param used the devices in use; where the namespace is one of them, there is no map
 */
export async function othersBelow(
  deps: NodeDeps,
  nqn: string,
  used: readonly DeviceNode[],
  context: CallContext,
): Promise<readonly DeviceUser[]> {
  const below = await deps.connector.find(nqn, context);
  if (below === undefined || used.some(({ deviceNumber }) => deviceNumber === below.deviceNumber)) return [];
  const users = await deps.devices.layers([below, ...await deps.devices.partitions(below)]);
  return users.filter((user) => user.by !== "layer" || !used.some(({ path }) => path === user.layer));
}
