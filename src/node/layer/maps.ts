import { VolumeError } from "../../volume/errors.ts";
import { isOwnMapUuid, mapName, mapUuid, nqnOfMapUuid } from "../../volume/model/device_layer.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { DeviceMap, MapIdentity } from "../../volume/ports/device_maps.ts";
import type { DeviceNode, FoundDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";

/** What the map of an export is called; undefined for an NQN that is none of this driver's. */
export function mapIdentity(deps: NodeDeps, nqn: string): MapIdentity | undefined {
  const { nqnPrefix } = deps.settings;
  const name = parseExportNqn(nqn, nqnPrefix);
  if (name === undefined) return undefined;
  return { name: mapName(name.volumeId), uuid: mapUuid(nqn, nqnPrefix) };
}

/** The map of an export; undefined when there is none. Another epoch's map of the volume is not this one's. */
export async function findMap(deps: NodeDeps, nqn: string): Promise<DeviceMap | undefined> {
  const identity = deps.maps && mapIdentity(deps, nqn);
  if (identity === undefined) return undefined;
  const map = await deps.maps!.find(identity.name);
  return map?.uuid === identity.uuid ? map : undefined;
}

/** The NQN that the volume's map is of, whatever its epoch; undefined when the volume has none. */
export async function mappedNqn(deps: NodeDeps, volumeId: string): Promise<string | undefined> {
  const map = await deps.maps?.find(mapName(volumeId));
  if (map === undefined || !isOwnMapUuid(map.uuid)) return undefined;
  return nqnOfMapUuid(map.uuid, deps.settings.nqnPrefix);
}

/**
 * Finds the device that a volume is used by: its map where it has one, else the namespace itself. Undefined while there
 * is no namespace, and while the map is not on the one that the NQN leads to.
 */
export async function findDevice(
  deps: NodeDeps,
  nqn: string,
  context: CallContext,
): Promise<FoundDevice | undefined> {
  const found = await deps.connector.find(nqn, context);
  const map = await findMap(deps, nqn);
  if (map === undefined || found === undefined) return found;
  return isOn(map, found) ? onMap(map, found) : undefined;
}

/** Whether the map is in use, and on that device alone. */
export function isOn(map: DeviceMap, { deviceNumber }: DeviceNode): boolean {
  return !map.suspended && map.below.length === 1 && map.below[0] === deviceNumber;
}

/** The map as the device of what the one below it was found as. */
export function onMap({ path, deviceNumber, sizeBytes }: DeviceMap, below: FoundDevice): FoundDevice {
  return { ...below, path, deviceNumber, sizeBytes };
}

/** The node that a volume is used by, proven or not: its map where it has one, also without a path. */
export async function usedNode(
  deps: NodeDeps,
  nqn: string,
  context: CallContext,
): Promise<DeviceNode | undefined> {
  return await findMap(deps, nqn) ?? await deps.connector.find(nqn, context);
}

/** Whether what is written to the volume would wait for a device that is gone. */
export async function isQueueing(deps: NodeDeps, nqn: string, context: CallContext): Promise<boolean> {
  const map = await findMap(deps, nqn);
  if (map === undefined || await findDevice(deps, nqn, context) !== undefined) return false;
  return map.sizeBytes > 0n && (await deps.maps!.table(map, context)).queues;
}

/** What waits for a device that is gone fails from now on. OK when there is no map. */
export async function endQueueing(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  const map = await findMap(deps, nqn);
  if (map !== undefined) await deps.maps!.endQueueing(map, context);
}

/**
 * Removes the map of an export that nobody uses, and with it all that waits. OK when there is none. Queueing is not ended
 * before: the kernel removes no map that is open, and whoever has it open would lose what waits.
 *
 * @throws {VolumeError} in-use, with who has it open, while it is in use
 */
export async function removeMap(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  const map = await findMap(deps, nqn);
  if (map === undefined) return;
  try {
    await deps.maps!.remove(map, context);
  } catch (error) {
    if (!VolumeError.is(error, "in-use")) throw error;
    const holder = await deps.devices.holder(map, context);
    throw new VolumeError("in-use", `${error.message} holder=${holder?.description ?? "unknown"}`);
  }
}
