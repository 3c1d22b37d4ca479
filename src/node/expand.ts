import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { ProvenDevice } from "../volume/ports/node_ports.ts";
import { assertSizeRange, type SizeRange } from "../volume/model/sizes.ts";
import type { Stash } from "../volume/model/staging_state.ts";
import { awaitDevice, proveStaged } from "./connections/device.ts";
import { mountsAt } from "./mount_table.ts";
import { Stashes } from "./stage/staging_store.ts";
import { getPlaced } from "./health/stats.ts";
import type { NodeWorld } from "./deps.ts";

/** What NodeExpandVolume asks for. */
export interface ExpandRequest {
  readonly volumeId: string;
  readonly volumePath: string;
  readonly range: SizeRange;
}

/**
 * Makes a grown volume's size visible here: the device is scanned again and waited for, and a file system on it is
 * grown. Answers the size of the device in bytes.
 *
 * @throws {VolumeError} not-found when the volume is not at the path; out-of-range when it is larger than the limit;
 * precondition when its file system is staged read-only or not mounted; unavailable when the device does not grow
 */
export async function expandVolume(
  world: NodeWorld,
  request: ExpandRequest,
  context: CallContext,
): Promise<bigint> {
  assertSizeRange(request.range);
  const stash = await getPlaced(world, request.volumeId, request.volumePath, context);
  await world.connector.rescan(stash.nqn, context);
  const device = await awaitGrown(world, stash, request.range, context);
  const { limitBytes } = request.range;
  if (limitBytes > 0n && device.sizeBytes > limitBytes) {
    throw new VolumeError(
      "out-of-range",
      `Cannot expand the volume as it is larger than the limit: volume=${stash.volumeId} ` +
        `size=${device.sizeBytes} limit=${limitBytes}`,
    );
  }
  await new Stashes(world).write({ ...stash, sizeBytes: device.sizeBytes });
  if (stash.kind !== "block") {
    const point = await writableStaging(world, stash);
    await world.filesystems.grow(device, stash.kind, point, context);
    context.signal.throwIfAborted();
  }
  return device.sizeBytes;
}

async function awaitGrown(
  world: NodeWorld,
  stash: Stash,
  range: SizeRange,
  context: CallContext,
): Promise<ProvenDevice> {
  const found = await awaitDevice(world, stash.nqn, range.requiredBytes, context);
  const device = await proveStaged(world, found, stash, context);
  if (device.deviceNumber === stash.device?.deviceNumber) return device;
  throw new VolumeError(
    "identity-mismatch",
    `Cannot expand the volume as its device became another one: volume=${stash.volumeId} ` +
      `was=${stash.device?.deviceNumber} is=${device.deviceNumber}`,
  );
}

/** Where the file system is mounted writable. */
async function writableStaging(world: NodeWorld, stash: Stash): Promise<string> {
  const point = await world.paths.mountPoint(stash.stagingPath);
  const top = mountsAt(await world.mounts.table(), point).at(-1);
  if (!stash.readOnly && top?.deviceNumber === stash.device?.deviceNumber) return point;
  throw new VolumeError(
    "precondition",
    `Cannot grow the file system as it is ${
      stash.readOnly ? "staged read-only" : "not mounted at its staging path"
    }: ` +
      `volume=${stash.volumeId}`,
  );
}
