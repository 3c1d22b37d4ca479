import { VolumeError } from "../../volume/errors.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { wantsReadOnlyDevice } from "../../volume/model/staging/intent.ts";
import { mapName, mapUuid } from "../../volume/model/device_layer.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { DeviceMap, MapIdentity, ReloadOptions } from "../../volume/ports/device_maps.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { judgedSignature } from "../../volume/rules/format.ts";
import { proveMap } from "../chain/map.ts";
import { holdingNamespace } from "../connections/device.ts";
import { refuseBound } from "../connections/observe.ts";
import type { NodeDeps } from "../deps.ts";

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
  const identity = mapIdentity(deps, stagingState.intent.nqn)!;
  const there = await maps.find(identity.name);
  const isReady = there?.uuid === identity.uuid && there.on === below.deviceNumber && !hasFailed;
  const put = () => moveOrMake(deps, stagingState, below, there, options, context);
  if (!isReady) await holdingNamespace(deps, below, context, put);
  return await proveMap(deps, below, context);
}

/** The name and UUID of the map of an export; undefined for an NQN that does not belong to this driver. */
function mapIdentity(deps: NodeDeps, nqn: string): MapIdentity | undefined {
  const { nqnPrefix } = deps.settings;
  const name = parseExportNqn(nqn, nqnPrefix);
  if (name === undefined) return undefined;
  return { name: mapName(name.volumeId), uuid: mapUuid(nqn, nqnPrefix) };
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
  const identity = mapIdentity(deps, stagingState.intent.nqn)!;
  await refuseBound(deps, stagingState.volumeId, below, context);
  if (there === undefined || there.sizeBytes === 0n) return await maps.make(identity, below, context);
  await assertSameContent(deps, stagingState, there, below, context);
  return await maps.reload({ ...there, ...identity }, below, there.sizeBytes, context, options);
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
  const { volumeId, intent: { kind }, content: { used, filesystemUuid } } = stagingState;
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
  if (kind === "block" || !used) return;
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
