import { VolumeError } from "../../volume/errors.ts";
import type { MapKind } from "../../volume/model/device_layer.ts";
import { usableBytes } from "../../volume/model/encryption.ts";
import { inUse } from "../../volume/model/host/device_user.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { keepersOf } from "../../volume/rules/host/device_users.ts";
import { prove } from "../connections/device.ts";
import type { NodeDeps } from "../deps.ts";
import { findMap, findMapOf, findOwnMap, type MappedVolume, readChain, type VolumeMap } from "./chain.ts";

/**
 * Proves that the map of a proven namespace is active, on that alone, and a `crypt` that it encrypts as this driver does: from
 * the map's table to the namespace's number, and from that to its NQN. Returns the map, proven.
 *
 * @throws {VolumeError} unavailable when the map is not there; identity-mismatch when it does not encrypt so, or has another
 *   size than its namespace leaves
 */
export async function proveMap(
  deps: NodeDeps,
  below: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  const { nqn, uniqueId } = below;
  const { namespace, map, used } = await readChain(deps, nqn, context);
  if (map === undefined || used === undefined || namespace?.deviceNumber !== below.deviceNumber) {
    throw new VolumeError(
      "unavailable",
      `Cannot use the volume because its map is not on its device: nqn=${nqn} map=${map?.name ?? "none"} ` +
        `below=${map?.below.join() ?? ""} device=${below.deviceNumber}`,
    );
  }
  if (map.kind === "crypt") await deps.encryption!.assertOwn(map, below, context);
  const sizeBytes = map.kind === "crypt" ? usableBytes(below.sizeBytes, true) : map.sizeBytes;
  return await prove(deps, used, { nqn, uniqueId, sizeBytes }, context);
}

/**
 * Asserts that the mapping of the volume, on whatever device it is, encrypts as this driver does. OK when there is none.
 *
 * @throws {VolumeError} identity-mismatch when it does not
 */
export async function assertEncrypts(deps: NodeDeps, volumeId: string, context: CallContext): Promise<void> {
  const map = await findMap(deps, volumeId);
  const deviceNumber = map?.below[0];
  if (map?.kind !== "crypt" || deviceNumber === undefined) return;
  await deps.encryption!.assertOwn(map, { deviceNumber }, context);
}

/**
 * Grows the map of a proven namespace to it. Returns the map, proven; the namespace itself where there is none.
 *
 * @param kind of the map that there has to be
 * @throws {VolumeError} as {@linkcode proveMap}
 */
export async function growMap(
  deps: NodeDeps,
  kind: MapKind | undefined,
  below: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  const map = await findMapOf(deps, below.nqn);
  if (map === undefined && kind === undefined) return below;
  const isCrypt = map?.kind === "crypt";
  const isSmaller = map !== undefined && map.on === below.deviceNumber &&
    map.sizeBytes < usableBytes(below.sizeBytes, isCrypt);
  if (isSmaller && isCrypt) {
    await deps.encryption!.assertOwn(map, below, context);
    await deps.encryption!.resize(map, below, context);
  } else if (isSmaller) {
    await deps.maps!.reload(map, below, below.sizeBytes, context);
  }
  return await proveMap(deps, below, context);
}

/** Removes the map of an unused volume, see {@linkcode removeMap}. OK when there is none. */
export async function removeOwnMap(
  deps: NodeDeps,
  volume: MappedVolume,
  context: CallContext,
): Promise<void> {
  const map = await findOwnMap(deps, volume, context);
  if (map !== undefined) await removeMap(deps, map, context);
}

/**
 * Removes an unused map, and all I/O that waits in it. It does not end queueing before: the kernel removes no open map, and
 * the process that has it open would lose the waiting I/O. A `crypt` whose device is gone is removed as soon as nothing has it
 * open any more.
 *
 * @throws {VolumeError} in-use, naming the user, while it is in use
 */
export async function removeMap(deps: NodeDeps, map: VolumeMap, context: CallContext): Promise<void> {
  try {
    if (map.kind === "multipath") await deps.maps!.remove(map, context);
    else await deps.encryption!.close(map, map.below.includes("gone"), context);
  } catch (error) {
    if (!VolumeError.is(error, "in-use")) throw error;
    throw inUse(await keepersOf(deps, map, context), (users) => `${error.message} because ${users}`);
  }
}
