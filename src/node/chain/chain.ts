import {
  isEncryptionUuid,
  isOwnMapUuid,
  type MapKind,
  mapName,
  nqnOfMapUuid,
} from "../../volume/model/device_layer.ts";
import type { DeviceUser } from "../../volume/model/host/device_user.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { DeviceMap } from "../../volume/ports/device_maps.ts";
import type { FoundDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";

/** The map between a volume's namespace and its users. */
export interface VolumeMap extends DeviceMap {
  readonly kind: MapKind;
  /** The export that it is of; undefined for a `crypt`, which is of the volume in every epoch. */
  readonly nqn: string | undefined;
}

/**
 * One export of a volume as the kernel shows it: namespace, map, device in use. A value of one moment; what is done to the
 * device needs a proof of that moment.
 */
export interface DeviceChain {
  readonly namespace: FoundDevice | undefined;
  readonly map: VolumeMap | undefined;
  /**
   * What users have, with the NQN and the identity of the namespace: the map, else the namespace. Undefined while there is no
   * namespace, and while the map is suspended or on another device.
   */
  readonly used: FoundDevice | undefined;
}

/**
 * Reads the chain of an export. Starts no process, and opens no device.
 *
 * @throws {VolumeError} identity-mismatch when the export has several namespaces; unavailable when /sys cannot be read
 */
export async function readChain(deps: NodeDeps, nqn: string, context: CallContext): Promise<DeviceChain> {
  const namespace = await deps.connector.find(nqn, context);
  return chainOf(namespace, await findMapOf(deps, nqn));
}

/** The chain of a namespace and the map of its export. */
export function chainOf(namespace: FoundDevice | undefined, map: VolumeMap | undefined): DeviceChain {
  if (map === undefined || namespace === undefined) return { namespace, map, used: namespace };
  const { path, deviceNumber, sizeBytes } = map;
  return {
    namespace,
    map,
    used: map.on === namespace.deviceNumber ? { ...namespace, path, deviceNumber, sizeBytes } : undefined,
  };
}

/** The map of a volume, in whatever epoch it was made and on whatever device it is; undefined when there is none. */
export async function findMap(deps: NodeDeps, volumeId: string): Promise<VolumeMap | undefined> {
  const map = await deps.maps?.find(mapName(volumeId));
  if (map === undefined) return undefined;
  if (isEncryptionUuid(map.uuid)) return { ...map, kind: "crypt", nqn: undefined };
  if (!isOwnMapUuid(map.uuid)) return undefined;
  return { ...map, kind: "multipath", nqn: nqnOfMapUuid(map.uuid, deps.settings.nqnPrefix) };
}

/** The map of an export: a multipath of another epoch does not count. */
export async function findMapOf(deps: NodeDeps, nqn: string): Promise<VolumeMap | undefined> {
  const name = parseExportNqn(nqn, deps.settings.nqnPrefix);
  const map = name && await findMap(deps, name.volumeId);
  return map?.kind === "crypt" || map?.nqn === nqn ? map : undefined;
}

/** The map of an export in which I/O waits while the namespace is away; undefined when there is none. */
export async function findMultipath(deps: NodeDeps, nqn: string): Promise<VolumeMap | undefined> {
  const map = await findMapOf(deps, nqn);
  return map?.kind === "multipath" ? map : undefined;
}

/** A volume, and those of its exports whose map is meant. */
export interface MappedVolume {
  readonly volumeId: string;
  readonly nqns: readonly string[];
}

/** The map of those exports: a `crypt` unless it is on the namespace of another export of the volume that is connected. */
export async function findOwnMap(
  deps: NodeDeps,
  { volumeId, nqns }: MappedVolume,
  context: CallContext,
): Promise<VolumeMap | undefined> {
  const map = await findMap(deps, volumeId);
  if (map?.nqn !== undefined) return nqns.includes(map.nqn) ? map : undefined;
  if (map === undefined) return undefined;
  for (const nqn of await deps.connector.connected(context)) {
    const isOther = !nqns.includes(nqn) &&
      parseExportNqn(nqn, deps.settings.nqnPrefix)?.volumeId === volumeId;
    if (!isOther) continue;
    const { namespace } = await readChain(deps, nqn, context);
    if (namespace !== undefined && map.on === namespace.deviceNumber) return undefined;
  }
  return map;
}

/** What this node has made of the namespace below a map besides that map, as its own multipath does. */
export async function othersBelow(
  deps: NodeDeps,
  { namespace, map }: DeviceChain,
): Promise<readonly DeviceUser[]> {
  if (namespace === undefined || map === undefined) return [];
  const users = await deps.devices.layers([namespace, ...await deps.devices.partitions(namespace)]);
  return users.filter((user) => user.by !== "layer" || user.layer !== map.path);
}
