import { VolumeError } from "../../volume/errors.ts";
import { isEncryptionUuid, mapName } from "../../volume/model/device_layer.ts";
import { inUse } from "../../volume/model/host/device_user.ts";
import { usableBytes } from "../../volume/model/encryption.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { DeviceMap } from "../../volume/ports/device_maps.ts";
import type { Encryption } from "../../volume/ports/encryption.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { prove } from "../connections/device.ts";
import { keepersOf } from "../../volume/rules/host/device_users.ts";
import { isOn, onMap } from "../layer/maps.ts";
import type { NodeDeps } from "../deps.ts";

/** A volume, and those of its exports that a mapping may belong to. */
export interface MappedVolume {
  readonly volumeId: string;
  readonly nqns: readonly string[];
}

/**
 * What this node decrypts with.
 *
 * @param verb what was to be done with the volume, for people
 * @throws {VolumeError} precondition when this node can open no encrypted volume
 */
export async function encryptionFor(
  deps: NodeDeps,
  verb: string,
  volumeId: string,
  context: CallContext,
): Promise<Encryption> {
  const { encryption } = deps;
  const obstacle = encryption === undefined
    ? "its connector has no mappings"
    : await encryption.obstacle(context);
  if (encryption !== undefined && obstacle === undefined) return encryption;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because this node cannot decrypt it: volume=${volumeId}: ${obstacle}`,
  );
}

/** Finds the mapping of an encrypted volume, on whatever device it is; undefined when there is none. */
export async function findMapping(deps: NodeDeps, volumeId: string): Promise<DeviceMap | undefined> {
  const map = await deps.maps?.find(mapName(volumeId));
  return map !== undefined && isEncryptionUuid(map.uuid) ? map : undefined;
}

/** Finds the volume's mapping, unless it is on the device of another export of it that is connected here. */
export async function findOwnMapping(
  deps: NodeDeps,
  { volumeId, nqns }: MappedVolume,
  context: CallContext,
): Promise<DeviceMap | undefined> {
  const mapping = await findMapping(deps, volumeId);
  if (mapping === undefined) return undefined;
  for (const nqn of await deps.connector.connected(context)) {
    const isOther = !nqns.includes(nqn) &&
      parseExportNqn(nqn, deps.settings.nqnPrefix)?.volumeId === volumeId;
    if (!isOther) continue;
    const device = await deps.connector.find(nqn, context);
    if (device !== undefined && isOn(mapping, device)) return undefined;
  }
  return mapping;
}

/**
 * Closes the mapping of an unused volume. OK when there is none. One whose device is gone is closed as soon as nothing has
 * it open any more.
 *
 * @throws {VolumeError} in-use, naming the user, while it is in use
 */
export async function closeMapping(
  deps: NodeDeps,
  volume: MappedVolume,
  context: CallContext,
): Promise<void> {
  const mapping = await findOwnMapping(deps, volume, context);
  if (mapping !== undefined) await close(deps, mapping, context);
}

/** Closes that mapping, see {@linkcode closeMapping}. */
export async function close(deps: NodeDeps, mapping: DeviceMap, context: CallContext): Promise<void> {
  try {
    await deps.encryption!.close(mapping, mapping.below.includes("gone"), context);
  } catch (error) {
    if (!VolumeError.is(error, "in-use")) throw error;
    throw inUse(await keepersOf(deps, mapping, context), (users) => `${error.message} because ${users}`);
  }
}

/**
 * Grows a volume's mapping to its proven device. Returns the mapping, proven.
 *
 * @throws {VolumeError} unavailable when there is no mapping on the device; identity-mismatch when it does not encrypt as this
 *   driver does, or is smaller than the device leaves room for
 */
export async function growMapping(
  deps: NodeDeps,
  volumeId: string,
  below: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  const mapping = await findMapping(deps, volumeId);
  const isSmaller = mapping !== undefined && isOn(mapping, below) &&
    mapping.sizeBytes < usableBytes(below.sizeBytes, true);
  if (isSmaller) {
    await deps.encryption!.assertOwn(mapping, below, context);
    await deps.encryption!.resize(mapping, below, context);
  }
  return await proveMapping(deps, volumeId, below, context);
}

/**
 * Proves that the mapping of the volume is active, on the proven device alone, and encrypts as this driver does: from the
 * map's table to the device's number, and from that to its NQN.
 *
 * @throws {VolumeError} unavailable when it is not there; identity-mismatch when it does not encrypt so, or has another
 *   size than its device
 */
export async function proveMapping(
  deps: NodeDeps,
  volumeId: string,
  below: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  const { nqn, uniqueId } = below;
  const mapping = await findMapping(deps, volumeId);
  const found = await deps.connector.find(nqn, context);
  const isThere = mapping !== undefined && found?.deviceNumber === below.deviceNumber && isOn(mapping, found);
  if (!isThere) {
    throw new VolumeError(
      "unavailable",
      `Cannot use the encrypted volume because its mapping is not on its device: device=${below.path} nqn=${nqn}`,
    );
  }
  await deps.encryption!.assertOwn(mapping, below, context);
  const sizeBytes = usableBytes(below.sizeBytes, true);
  return await prove(deps, onMap(mapping, found), { nqn, uniqueId, sizeBytes }, context);
}

/**
 * Asserts that the mapping of the volume, on whatever device it is, encrypts as this driver does. OK when there is none.
 *
 * @throws {VolumeError} identity-mismatch when it does not
 */
export async function assertEncrypts(deps: NodeDeps, volumeId: string, context: CallContext): Promise<void> {
  const mapping = await findMapping(deps, volumeId);
  const deviceNumber = mapping?.below[0];
  if (mapping === undefined || deviceNumber === undefined) return;
  await deps.encryption!.assertOwn(mapping, { deviceNumber }, context);
}
