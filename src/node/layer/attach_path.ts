import { VolumeError } from "../../volume/errors.ts";
import { type StagingState, wantsReadOnlyDevice } from "../../volume/model/staging_state.ts";
import type { DeviceMap, ReloadOptions } from "../../volume/ports/device_maps.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { judgedSignature } from "../../volume/rules/format.ts";
import { holdingNamespace, prove } from "../connections/device.ts";
import type { NodeDeps } from "../deps.ts";
import { refuseBoundBelow } from "./bound_below.ts";
import { isOn, mapIdentity, onMap } from "./maps.ts";

/**
 * Puts a volume's map onto its proven namespace: creates the map, or reloads one that is on another device. I/O that
 * waits in the map goes on there. Returns the map, proven.
 *
 * @param options `hasFailed` says that I/O on the map has failed before, so that it has to be told to try again; others
 *   see {@linkcode ReloadOptions}
 * @throws {VolumeError} identity-mismatch when the namespace does not hold the volume's file system, or is smaller than
 *   the map; in-use while the namespace is bound anywhere; unavailable when it is gone or another one by now; the map
 *   stays as it is then
 */
export async function attachPath(
  deps: NodeDeps,
  stagingState: StagingState,
  below: ProvenDevice,
  context: CallContext,
  { hasFailed = false, ...options }: ReloadOptions & { readonly hasFailed?: boolean } = {},
): Promise<ProvenDevice> {
  const maps = deps.maps!;
  const identity = mapIdentity(deps, stagingState.nqn)!;
  const there = await maps.find(identity.name);
  const isReady = there?.uuid === identity.uuid && isOn(there, below) && !hasFailed;
  const put = () => moveOrMake(deps, stagingState, below, there, options, context);
  const map = isReady ? there : await holdingNamespace(deps, below, context, put);
  return await proveOnMap(deps, map, below, context);
}

async function moveOrMake(
  deps: NodeDeps,
  stagingState: StagingState,
  below: ProvenDevice,
  there: DeviceMap | undefined,
  options: ReloadOptions,
  context: CallContext,
): Promise<DeviceMap> {
  const maps = deps.maps!;
  const identity = mapIdentity(deps, stagingState.nqn)!;
  await refuseBoundBelow(deps, stagingState.volumeId, below, context);
  if (there === undefined || there.sizeBytes === 0n) return await maps.make(identity, below, context);
  await assertSameContent(deps, stagingState, there, below, context);
  return await maps.reload({ ...there, ...identity }, below, there.sizeBytes, context, options);
}

/**
 * Grows a volume's map to its proven namespace. Returns the map, proven; the namespace itself where there is no map.
 */
export async function growMap(
  deps: NodeDeps,
  map: DeviceMap | undefined,
  below: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  if (map === undefined) return below;
  const grown = map.sizeBytes < below.sizeBytes && isOn(map, below)
    ? await deps.maps!.reload(map, below, below.sizeBytes, context)
    : map;
  return await proveOnMap(deps, grown, below, context);
}

/** @throws {VolumeError} unavailable when the map is not on the proven namespace */
async function proveOnMap(
  deps: NodeDeps,
  map: DeviceMap,
  below: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  if (!isOn(map, below)) {
    throw new VolumeError(
      "unavailable",
      `Cannot use the volume because its map is not on its device: map=${map.name} below=${map.below.join()} ` +
        `device=${below.deviceNumber}`,
    );
  }
  const { nqn, uniqueId } = below;
  return await prove(deps, onMap(map, below), { nqn, uniqueId, sizeBytes: map.sizeBytes }, context);
}

/**
 * I/O that waits in a map may only go to the volume itself. NQN, epoch and device number are proven already; this
 * compares the size and the file system. An unfinished file system cannot be compared.
 */
async function assertSameContent(
  deps: NodeDeps,
  stagingState: StagingState,
  map: DeviceMap,
  below: ProvenDevice,
  context: CallContext,
): Promise<void> {
  const { volumeId, kind, everMounted, filesystemUuid } = stagingState;
  if (!wantsReadOnlyDevice(stagingState) && await deps.devices.isReadOnly(below) === true) {
    throw new VolumeError(
      "unavailable",
      `Cannot use the device because it takes no writes: device=${below.path} volume=${volumeId}`,
    );
  }
  if (below.sizeBytes < map.sizeBytes) {
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the device because it is not the volume: device=${below.path} volume=${volumeId} ` +
        `expected size>=${map.sizeBytes} found size=${below.sizeBytes}`,
    );
  }
  if (kind === "block" || !everMounted) return;
  // The map has kept the device open since before the file system was made, so earlier reads may be stale.
  await deps.devices.forgetReads(below, context);
  const probed = await deps.filesystems.probe(below, context);
  // With its UUID it is the one that was mounted, whoever made it.
  const signature = judgedSignature(probed.signature, kind, filesystemUuid === undefined);
  const isSame = signature.state === "found" && signature.type === kind &&
    (filesystemUuid === undefined || signature.uuid === filesystemUuid);
  if (isSame) return;
  const found = signature.state === "found" ? `${signature.type} ${signature.uuid ?? ""}` : signature.state;
  throw new VolumeError(
    signature.state === "unknown" ? "unavailable" : "identity-mismatch",
    `Cannot use the device because it is not the volume: device=${below.path} volume=${volumeId} ` +
      `expected file system=${kind} ${filesystemUuid ?? ""} found ${found}`,
  );
}
