import { poll } from "../async/poll.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { FoundDevice, ProvenDevice } from "../volume/ports/node_ports.ts";
import type { FilesystemType } from "../volume/model/capabilities.ts";
import { assertSizeRange, type SizeRange } from "../volume/model/sizes.ts";
import { usableBytes } from "../volume/model/encryption.ts";
import type { StagingState } from "../volume/model/staging/state.ts";
import { growthProblems } from "../volume/rules/health/node_health.ts";
import { awaitDevice, proveNamespace } from "./connections/device.ts";
import { growMap } from "./chain/map.ts";
import { mountsAt } from "./mount_table.ts";
import { getPlaced } from "./health/stats.ts";
import type { NodeDeps } from "./deps.ts";

/**
 * How long a device may take to show a size that its router shows at once. A scan by the kernel takes a fraction of a
 * second.
 */
const growthMs = 10_000;

/** The fields of NodeExpandVolume. */
export interface ExpandRequest {
  readonly volumeId: string;
  readonly volumePath: string;
  readonly range: SizeRange;
}

/**
 * Makes a grown volume's size visible on this node: scans the device again, waits for its size, and grows a file system
 * on it. Returns the size of the device in bytes.
 *
 * @throws {VolumeError} not-found when the volume is not at the path; out-of-range when it is larger than the limit;
 *   precondition when the device does not grow before its next export, or its file system is staged read-only, not mounted or
 *   could not be grown by its stage either; unavailable when there is no device, or one below a device layer is exported anew
 */
export async function expandVolume(
  deps: NodeDeps,
  request: ExpandRequest,
  context: CallContext,
): Promise<bigint> {
  assertSizeRange(request.range);
  const stagingState = await getPlaced(deps, request.volumeId, request.volumePath, context);
  await deps.connector.rescan(stagingState.intent.nqn, context);
  const { device, below } = await awaitGrown(deps, stagingState, request.range, context);
  const { limitBytes } = request.range;
  if (limitBytes > 0n && device.sizeBytes > limitBytes) {
    throw new VolumeError(
      "out-of-range",
      `Cannot expand the volume because it is larger than the limit: volume=${stagingState.volumeId} ` +
        `size=${device.sizeBytes} limit=${limitBytes}`,
    );
  }
  const intent = { ...stagingState.intent, namespaceBytes: below.sizeBytes };
  await deps.stagingStore.write({ ...stagingState, intent });
  const { kind } = stagingState.intent;
  if (kind !== "block") {
    const mountPoint = await writableStaging(deps, stagingState);
    await growFilesystem(deps, stagingState, { device, filesystem: kind, mountPoint }, context);
    context.signal.throwIfAborted();
    if (stagingState.here.notGrown !== undefined) {
      const { notGrown: _before, ...here } = stagingState.here;
      await deps.stagingStore.write({ ...stagingState, intent, here });
      deps.events.occurred({
        kind: "health",
        volumeId: stagingState.volumeId,
        problems: growthProblems(here),
      });
    }
  }
  return device.sizeBytes;
}

/**
 * What the stage could not grow either is refused for good: the kubelet expands a volume that is smaller than its claim
 * before its pod starts, and with any other error the pod would never start.
 */
async function growFilesystem(
  deps: NodeDeps,
  { here: { notGrown } }: StagingState,
  { device, filesystem, mountPoint }: {
    readonly device: ProvenDevice;
    readonly filesystem: FilesystemType;
    readonly mountPoint: string;
  },
  context: CallContext,
): Promise<void> {
  try {
    await deps.filesystems.grow(device, filesystem, mountPoint, context);
  } catch (error) {
    if (notGrown === undefined || !VolumeError.is(error, "unavailable")) throw error;
    throw new VolumeError("precondition", error.message, { cause: error });
  }
}

async function awaitGrown(
  deps: NodeDeps,
  stagingState: StagingState,
  range: SizeRange,
  context: CallContext,
): Promise<{ readonly device: ProvenDevice; readonly below: ProvenDevice }> {
  const found = await findGrown(deps, stagingState, range.requiredBytes, context);
  const below = await proveNamespace(deps, found, stagingState, context);
  const device = await growMap(deps, stagingState.intent.map, below, context);
  if (device.deviceNumber === stagingState.here.device?.deviceNumber) return { device, below };
  throw new VolumeError(
    "identity-mismatch",
    `Cannot expand the volume because its device changed: volume=${stagingState.volumeId} ` +
      `was=${stagingState.here.device?.deviceNumber} is=${device.deviceNumber}`,
  );
}

/**
 * Waits only briefly: a router may show the new size only with the next export. The kubelet never repeats a call on a
 * volume in use that got FAILED_PRECONDITION, and starts no pod with any other error. Below a device layer the next export
 * may be under way: it ends all sessions, so as long as none is live, that is unavailable.
 */
async function findGrown(
  deps: NodeDeps,
  { volumeId, intent: { nqn, map } }: StagingState,
  requiredBytes: bigint,
  context: CallContext,
): Promise<FoundDevice> {
  let found = await awaitDevice(deps, nqn, context);
  const sizeForUser = () => usableBytes(found.sizeBytes, map === "crypt");
  const grown = await poll(deps.clock, context, async () => {
    found = await deps.connector.find(nqn, context) ?? found;
    return sizeForUser() < requiredBytes ? undefined : found;
  }, growthMs);
  if (grown !== undefined) return grown;
  const paths = await deps.connector.connections(nqn, context);
  const isExportedAnew = map === "multipath" && !paths.some(({ state }) => state === "live");
  throw new VolumeError(
    isExportedAnew ? "unavailable" : "precondition",
    `Cannot expand the volume because its device keeps its size: volume=${volumeId} size=${sizeForUser()} ` +
      `wanted=${requiredBytes}; it grows when the router exports it anew: end the pods that use it, and start them again`,
  );
}

/** Where the file system is mounted writable. */
async function writableStaging(deps: NodeDeps, stagingState: StagingState): Promise<string> {
  const mountPoint = await deps.paths.mountPoint(stagingState.intent.stagingPath);
  const top = mountsAt(await deps.mounts.table(), mountPoint).at(-1);
  if (!stagingState.intent.readOnly && top?.deviceNumber === stagingState.here.device?.deviceNumber) {
    return mountPoint;
  }
  throw new VolumeError(
    "precondition",
    "Cannot grow the file system because it is " +
      `${stagingState.intent.readOnly ? "staged read-only" : "not mounted at its staging path"}: ` +
      `volume=${stagingState.volumeId}`,
  );
}
