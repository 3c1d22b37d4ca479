import { encodeHandle } from "./ids.ts";

/** Whether a volume gets a map between its device and its user: `auto` where the kernel has it. */
export const deviceLayers = ["auto", "multipath", "none"] as const;

/** One of {@linkcode deviceLayers}. */
export type DeviceLayer = typeof deviceLayers[number];

/** How long a controller that was cut off in the middle of a toggle may take to turn the export on again, in seconds. */
const toggleSeconds = 600;

/**
 * Whether writers wait on each node that stages a volume with these parameters while its export is off for a new size. After
 * `ctrlLossTmo` a node would make their writes fail.
 */
export function outlastsToggle(parameters: Readonly<Record<string, string>>): boolean {
  const { deviceLayer, ctrlLossTmo, reconnectDelay = "0" } = parameters;
  if (deviceLayer !== "multipath") return false;
  return ctrlLossTmo === undefined || ctrlLossTmo === "-1" ||
    Number(ctrlLossTmo) >= toggleSeconds + Number(reconnectDelay);
}

/** What the UUIDs of this driver's maps begin with: nothing that multipathd, LVM or udev's rules go by. */
const uuidPrefix = "RDSCSI-";

/** Longest UUID of a map, in bytes: `DM_UUID_LEN` of the kernel, without its end. */
export const maxMapUuidBytes = 128;

/** The name of a volume's map, whatever its epoch. */
export function mapName(volumeId: string): string {
  return `rds-csi-${encodeHandle(volumeId)}`;
}

/**
 * The UUID of the map of an export: what its NQN says after the prefix, which is the volume and the epoch.
 *
 * @param prefix what the NQNs of this driver's exports begin with, without the colon after it
 */
export function mapUuid(nqn: string, prefix: string): string {
  return `${uuidPrefix}${nqn.slice(prefix.length + 1)}`;
}

/** The NQN that {@linkcode mapUuid} was given. */
export function nqnOfMapUuid(uuid: string, prefix: string): string {
  return `${prefix}:${uuid.slice(uuidPrefix.length)}`;
}

/** Whether a map is this driver's. */
export function isOwnMapUuid(uuid: string): boolean {
  return uuid.startsWith(uuidPrefix);
}
