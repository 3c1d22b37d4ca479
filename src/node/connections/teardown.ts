import { VolumeError } from "../../volume/errors.ts";
import { encodeHandle } from "../../volume/model/ids.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FoundDevice } from "../../volume/ports/node_ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";
import { bindsOf, isOnBlockDevice, mountsAt, mountsOf } from "../mount_table.ts";
import { Stashes } from "../stage/staging_store.ts";
import type { NodeWorld } from "../deps.ts";

/** What is to be taken down of a volume. */
export interface Teardown {
  readonly volumeId: string;
  readonly nqns: readonly string[];
  readonly stagingPaths: readonly string[];
  /** What this node remembers of it; undefined when nothing is known. */
  readonly stash: Stash | undefined;
}

/** The numbers that a volume's device is on record as. */
export function recordedNumbers(stash: Stash): readonly string[] {
  return [stash.device?.deviceNumber, stash.mountedAs].filter((number) => number !== undefined);
}

/** What the file says that names the device; undefined when there is none. Reading a link or a device may never end. */
export async function readDeviceFile(
  world: NodeWorld,
  path: string,
  context: CallContext,
): Promise<string | undefined> {
  const info = await world.paths.info(path, context);
  return info?.kind === "file" ? await world.paths.readFile(path) : undefined;
}

/** The name of the file in the staging folder that names the device of a raw block volume. */
export const deviceFileName = "device";

/**
 * Takes a volume off this node: refuses while anybody uses it, then unmounts, flushes and disconnects, and answers
 * only when neither the mount table nor the connector shows anything of it.
 *
 * It goes by what the kernel shows, so it can be begun anew after any failure.
 *
 * @throws {VolumeError} in-use when the volume is published, bound, mounted elsewhere or open; precondition when
 * something else is mounted at the staging path
 */
export async function tearDown(world: NodeWorld, volume: Teardown, context: CallContext): Promise<void> {
  const points = await mountPoints(world, volume.stagingPaths);
  const found = await findAll(world, volume.nqns, context);
  await refuseWhilePublished(world, volume, points, found, context);
  await refuseWhileOpen(world, volume, found, context);
  const { stash } = volume;
  // Nothing may be published any more, however far this gets.
  if (stash !== undefined) await new Stashes(world).write({ ...stash, staged: false });
  // In a volume's own files, the device file is never looked for.
  if (stash === undefined || stash.kind === "block") {
    await removeDeviceFiles(world, volume.stagingPaths, points, context);
  }
  for (const point of points) {
    context.signal.throwIfAborted();
    await world.mounts.unmount(point, context);
  }
  await refuseWhileClaimed(world, volume, found, context);
  for (const nqn of volume.nqns) {
    context.signal.throwIfAborted();
    await world.connector.disconnect(nqn, context);
  }
  await verifyGone(world, volume, points, context);
}

/**
 * The NQNs of this volume that are connected, of whatever epoch: what is left to go by when there is no state file.
 */
export async function connectedNqns(
  world: NodeWorld,
  volumeId: string,
  context: CallContext,
): Promise<readonly string[]> {
  const own = `${world.settings.nqnPrefix}:${encodeHandle(volumeId)}`;
  const connected = await world.connector.connected(context);
  // What has more parts is another router's, which may be called as this volume is.
  const isEpoch = (nqn: string) => nqn.startsWith(`${own}:`) && !nqn.slice(own.length + 1).includes(":");
  return connected.filter((nqn) => nqn === own || isEpoch(nqn));
}

/**
 * Undoes a connect. What could not be unmounted before, or is mounted where this process does not see it, stays
 * connected: its writes would be lost without a word to whoever has it.
 *
 * @throws {VolumeError} in-use while the device is mounted or claimed
 */
export async function disconnectUnused(world: NodeWorld, nqn: string, context: CallContext): Promise<void> {
  const device = await world.connector.find(nqn, context);
  if (device !== undefined) {
    const [mount] = mountsOf(await world.mounts.table(), new Set([device.deviceNumber]));
    const unused = mount === undefined && await world.devices.isUnclaimed(device, context);
    context.signal.throwIfAborted();
    if (!unused) {
      throw new VolumeError(
        "in-use",
        `Cannot disconnect as the device is in use: device=${device.path} ` +
          (mount === undefined ? "it cannot be opened exclusively" : `mounted at=${mount.mountPoint}`),
      );
    }
  }
  await world.connector.disconnect(nqn, context);
}

async function mountPoints(world: NodeWorld, paths: readonly string[]): Promise<readonly string[]> {
  return await Promise.all(paths.map((path) => world.paths.mountPoint(path)));
}

/** The devices of those of the subsystems that have one. */
export async function findAll(
  world: NodeWorld,
  nqns: readonly string[],
  context: CallContext,
): Promise<readonly FoundDevice[]> {
  const found = await Promise.all(nqns.map((nqn) => world.connector.find(nqn, context)));
  return found.filter((device) => device !== undefined);
}

async function refuseWhilePublished(
  world: NodeWorld,
  volume: Teardown,
  points: readonly string[],
  found: readonly FoundDevice[],
  context: CallContext,
): Promise<void> {
  const table = await world.mounts.table();
  const staged = points.flatMap((point) => mountsAt(table, point));
  const { stash } = volume;
  const own = stash && [...recordedNumbers(stash), ...found.map((device) => device.deviceNumber)];
  const foreign = staged.find((entry) =>
    !isOnBlockDevice(entry) || own?.includes(entry.deviceNumber) === false
  );
  if (foreign !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot unstage the volume as something else is mounted at its staging path: volume=${volume.volumeId} ` +
        `path=${foreign.mountPoint} device=${foreign.deviceNumber} type=${foreign.filesystem}`,
    );
  }
  const published = stash?.published.map(({ targetPath }) => targetPath) ?? [];
  for (const point of await mountPoints(world, published)) {
    if (mountsAt(table, point).length > 0) throw inUse(volume, `it is published at ${point}`);
  }
  const numbers = new Set([...found, ...staged].map((it) => it.deviceNumber));
  const elsewhere = mountsOf(table, numbers).find((entry) => !points.includes(entry.mountPoint));
  if (elsewhere !== undefined) throw inUse(volume, `it is mounted at ${elsewhere.mountPoint}`);
  for (const device of found) {
    const [bind] = await bindsOf(world, table, device, context);
    if (bind !== undefined) throw inUse(volume, `it is bound at ${bind.mountPoint}`);
  }
}

async function refuseWhileOpen(
  world: NodeWorld,
  volume: Teardown,
  found: readonly FoundDevice[],
  context: CallContext,
): Promise<void> {
  for (const device of found) {
    const holder = await world.devices.holder(device, context);
    if (holder === undefined || (!holder.certain && world.connector.sparesOpenDevices)) continue;
    throw inUse(volume, `${device.path} is open: ${holder.description}`);
  }
}

/** Once nothing of it is mounted here, a claim is somebody else's: a mount in another namespace, a mapped device. */
async function refuseWhileClaimed(
  world: NodeWorld,
  volume: Teardown,
  found: readonly FoundDevice[],
  context: CallContext,
): Promise<void> {
  for (const device of found) {
    if (await world.devices.isUnclaimed(device, context)) continue;
    context.signal.throwIfAborted();
    throw inUse(volume, `${device.path} cannot be opened exclusively`);
  }
}

async function removeDeviceFiles(
  world: NodeWorld,
  stagingPaths: readonly string[],
  points: readonly string[],
  context: CallContext,
): Promise<void> {
  const table = await world.mounts.table();
  for (const [at, stagingPath] of stagingPaths.entries()) {
    if (mountsAt(table, points[at]!).length > 0) continue;
    const path = `${stagingPath}/${deviceFileName}`;
    const info = await world.paths.info(path, context);
    if (info !== undefined && info.kind !== "file") continue;
    const text = await world.paths.readFile(path);
    // Without it, a write of it may still have been interrupted.
    if (text === undefined || text.startsWith("/dev/")) await world.paths.removeFile(path);
  }
}

async function verifyGone(
  world: NodeWorld,
  volume: Teardown,
  points: readonly string[],
  context: CallContext,
): Promise<void> {
  const table = await world.mounts.table();
  const mounted = points.find((point) => mountsAt(table, point).length > 0);
  const connected = await world.connector.connected(context);
  const left = volume.nqns.find((nqn) => connected.includes(nqn));
  if (mounted === undefined && left === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot call the volume unstaged as something of it is left: volume=${volume.volumeId} ` +
      `mounted=${mounted ?? "no"} connected=${left ?? "no"}`,
  );
}

function inUse(volume: Teardown, why: string): VolumeError {
  return new VolumeError("in-use", `Cannot unstage the volume as ${why}: volume=${volume.volumeId}`);
}
