import { encodeHandle } from "./ids/handles.ts";

/** Whether a volume gets a map between its device and its users: `auto` where the kernel supports it. */
export const deviceLayers = ["auto", "multipath", "none"] as const;

/** One of {@linkcode deviceLayers}. */
export type DeviceLayer = typeof deviceLayers[number];

/** What a map does: `multipath` lets I/O wait while the namespace is away, `crypt` encrypts. */
export type MapKind = "multipath" | "crypt";

/**
 * How long a controller that was interrupted in the middle of a toggle may take to turn the export on again, in
 * seconds.
 */
const toggleSeconds = 600;

/**
 * Whether writers wait, on each node that stages a volume with these parameters, while its export is off for a new
 * size. After `ctrlLossTmo` a node would fail their writes.
 */
export function outlastsToggle(parameters: Readonly<Record<string, string>>): boolean {
  const { deviceLayer, ctrlLossTmo, reconnectDelay = "0" } = parameters;
  if (deviceLayer !== "multipath") return false;
  return ctrlLossTmo === undefined || ctrlLossTmo === "-1" ||
    Number(ctrlLossTmo) >= toggleSeconds + Number(reconnectDelay);
}

/** The prefix of the UUIDs of this driver's maps. multipathd, LVM and udev's rules do not act on it. */
const uuidPrefix = "RDSCSI-";

/** The longest UUID of a map, in bytes: the kernel's `DM_UUID_LEN` without the final zero byte. */
export const maxMapUuidBytes = 128;

/** The name of a volume's map, the same in every epoch. */
export function mapName(volumeId: string): string {
  return `rds-csi-${encodeHandle(volumeId)}`;
}

/**
 * The UUID of the map of an export: the part of its NQN after the prefix, which names the volume and the epoch.
 *
 * @param prefix the prefix of the NQNs of this driver's exports, without the colon after it
 */
export function mapUuid(nqn: string, prefix: string): string {
  return `${uuidPrefix}${nqn.slice(prefix.length + 1)}`;
}

/** The NQN from which {@linkcode mapUuid} made the UUID. */
export function nqnOfMapUuid(uuid: string, prefix: string): string {
  return `${prefix}:${uuid.slice(uuidPrefix.length)}`;
}

/** Whether the map is the mapping of an encrypted device: cryptsetup's form of a UUID. */
export function isEncryptionUuid(uuid: string): boolean {
  return uuid.startsWith("CRYPT-LUKS2-");
}

/** Whether the map belongs to this driver. */
export function isOwnMapUuid(uuid: string): boolean {
  return uuid.startsWith(uuidPrefix);
}
