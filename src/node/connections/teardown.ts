import { VolumeError } from "../../volume/errors.ts";
import { encodeHandle } from "../../volume/model/ids.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DeviceNode } from "../../volume/ports/node_ports.ts";
import type { StagingState } from "../../volume/model/staging_state.ts";
import { bindsOf, isOnBlockDevice, mountPointOf, mountsAt, mountsOf } from "../mount_table.ts";
import { findMap, mappedNqn, removeMap, usedNode } from "../layer/maps.ts";
import { StagingStore } from "../stage/staging_store.ts";
import type { NodeDeps } from "../deps.ts";

/** What is to be taken down of a volume. */
export interface Teardown {
  readonly volumeId: string;
  readonly nqns: readonly string[];
  readonly stagingPaths: readonly string[];
  /** What this node remembers of it; undefined when nothing is known. */
  readonly stagingState: StagingState | undefined;
}

/** The numbers that a volume's device is on record as. */
export function recordedNumbers(stagingState: StagingState): readonly string[] {
  return [stagingState.device?.deviceNumber, stagingState.mountedAs].filter((number) => number !== undefined);
}

/** What the file says that names the device; undefined when there is none. Reading a link or a device may never end. */
export async function readDeviceFile(
  deps: NodeDeps,
  path: string,
  context: CallContext,
): Promise<string | undefined> {
  const info = await deps.paths.info(path, context);
  return info?.kind === "file" ? await deps.paths.readFile(path) : undefined;
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
export async function tearDown(deps: NodeDeps, volume: Teardown, context: CallContext): Promise<void> {
  const found = await findAll(deps, volume.nqns, context);
  // A tool may resolve the paths, and /proc is read through for who has the device open: neither waits for the other.
  const [points, use] = await Promise.all([
    mountPoints(deps, volume.stagingPaths),
    findOpenUse(deps, found, context),
  ]);
  await refuseWhilePublished(deps, volume, points, found, context);
  if (use !== undefined) throw inUse(volume, use);
  const { stagingState } = volume;
  // Nothing may be published any more, however far this gets.
  if (stagingState !== undefined) await new StagingStore(deps).write({ ...stagingState, staged: false });
  // In a volume's own files, the device file is never looked for.
  if (stagingState === undefined || stagingState.kind === "block") {
    await removeDeviceFiles(deps, volume.stagingPaths, points, context);
  }
  for (const mountPoint of points) {
    context.signal.throwIfAborted();
    await deps.mounts.unmount(mountPoint, context);
  }
  await refuseWhileClaimed(deps, volume, found, context);
  for (const nqn of volume.nqns) {
    context.signal.throwIfAborted();
    await disconnect(deps, nqn, context);
  }
  await verifyGone(deps, volume, points, context);
}

/**
 * The NQNs of this volume that are connected or that a map is left of, of whatever epoch: what is left to go by when there is no state file.
 */
export async function connectedNqns(
  deps: NodeDeps,
  volumeId: string,
  context: CallContext,
): Promise<readonly string[]> {
  const own = `${deps.settings.nqnPrefix}:${encodeHandle(volumeId)}`;
  const mapped = await mappedNqn(deps, volumeId);
  const connected = new Set(await deps.connector.connected(context));
  if (mapped !== undefined) connected.add(mapped);
  // What has more parts is another router's, which may be called as this volume is.
  const isEpoch = (nqn: string) => nqn.startsWith(`${own}:`) && !nqn.slice(own.length + 1).includes(":");
  return [...connected].filter((nqn) => nqn === own || isEpoch(nqn));
}

/**
 * Undoes a connect. What could not be unmounted before, or is mounted where this process does not see it, stays
 * connected: its writes would be lost without a word to whoever has it.
 *
 * @throws {VolumeError} in-use while the device is mounted or claimed
 */
export async function disconnectUnused(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  const device = await usedNode(deps, nqn, context);
  if (device !== undefined) {
    const [mount] = mountsOf(await deps.mounts.table(), new Set([device.deviceNumber]));
    const unused = mount === undefined && await deps.devices.isUnclaimed(device, context);
    context.signal.throwIfAborted();
    if (!unused) {
      throw new VolumeError(
        "in-use",
        `Cannot disconnect because the device is in use: device=${device.path} ` +
          (mount === undefined ? "it cannot be opened exclusively" : `mounted at=${mount.mountPoint}`),
      );
    }
  }
  await disconnect(deps, nqn, context);
}

/** Removes the map of a subsystem that nobody uses, and then disconnects it. */
async function disconnect(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  await removeMap(deps, nqn, context);
  await deps.connector.disconnect(nqn, context);
}

async function mountPoints(deps: NodeDeps, paths: readonly string[]): Promise<readonly string[]> {
  return await Promise.all(paths.map((path) => mountPointOf(deps, path)));
}

/** What the subsystems are used by, of those that have a device or a map. */
export async function findAll(
  deps: NodeDeps,
  nqns: readonly string[],
  context: CallContext,
): Promise<readonly DeviceNode[]> {
  const found = await Promise.all(nqns.map((nqn) => usedNode(deps, nqn, context)));
  return found.filter((device) => device !== undefined);
}

async function refuseWhilePublished(
  deps: NodeDeps,
  volume: Teardown,
  points: readonly string[],
  found: readonly DeviceNode[],
  context: CallContext,
): Promise<void> {
  const table = await deps.mounts.table();
  const staged = points.flatMap((mountPoint) => mountsAt(table, mountPoint));
  const { stagingState } = volume;
  const own = stagingState &&
    [...recordedNumbers(stagingState), ...found.map((device) => device.deviceNumber)];
  const foreign = staged.find((entry) =>
    !isOnBlockDevice(entry) || own?.includes(entry.deviceNumber) === false
  );
  if (foreign !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot unstage the volume because something else is mounted at its staging path: volume=${volume.volumeId} ` +
        `path=${foreign.mountPoint} device=${foreign.deviceNumber} type=${foreign.filesystem}`,
    );
  }
  const published = stagingState?.published.map(({ targetPath }) => targetPath) ?? [];
  for (const mountPoint of await mountPoints(deps, published)) {
    if (mountsAt(table, mountPoint).length > 0) throw inUse(volume, `it is published at ${mountPoint}`);
  }
  const numbers = new Set([...found, ...staged].map((it) => it.deviceNumber));
  const elsewhere = mountsOf(table, numbers).find((entry) => !points.includes(entry.mountPoint));
  if (elsewhere !== undefined) throw inUse(volume, `it is mounted at ${elsewhere.mountPoint}`);
  for (const device of found) {
    const [bind] = await bindsOf(deps, table, device, context);
    if (bind !== undefined) throw inUse(volume, `it is bound at ${bind.mountPoint}`);
  }
}

/** Who has one of the devices open, in words; undefined when nobody does. */
async function findOpenUse(
  deps: NodeDeps,
  found: readonly DeviceNode[],
  context: CallContext,
): Promise<string | undefined> {
  for (const device of found) {
    const [layer] = await deps.devices.layers(device);
    if (layer !== undefined) return usedByHost(device, layer);
    const holder = await deps.devices.holder(device, context);
    if (holder === undefined || (!holder.certain && deps.connector.sparesOpenDevices)) continue;
    return `${device.path} is open: ${holder.description}`;
  }
  return undefined;
}

/** A node that looks into raw devices finds what a workload has written there: LVM, md, multipath. */
function usedByHost({ path }: DeviceNode, layer: string): string {
  return `this node itself uses ${path}, by ${layer}, which it made by what is written in the volume; ` +
    "remove it on the node (vgchange -an, mdadm --stop, multipath -f): see the guide on raw block volumes";
}

/** Once nothing of it is mounted here, a claim is somebody else's: a mount in another namespace, a mapped device. */
async function refuseWhileClaimed(
  deps: NodeDeps,
  volume: Teardown,
  found: readonly DeviceNode[],
  context: CallContext,
): Promise<void> {
  for (const device of found) {
    if (await deps.devices.isUnclaimed(device, context)) continue;
    context.signal.throwIfAborted();
    throw inUse(volume, `${device.path} cannot be opened exclusively`);
  }
}

async function removeDeviceFiles(
  deps: NodeDeps,
  stagingPaths: readonly string[],
  points: readonly string[],
  context: CallContext,
): Promise<void> {
  const table = await deps.mounts.table();
  for (const [at, stagingPath] of stagingPaths.entries()) {
    if (mountsAt(table, points[at]!).length > 0) continue;
    const path = `${stagingPath}/${deviceFileName}`;
    const info = await deps.paths.info(path, context);
    if (info !== undefined && info.kind !== "file") continue;
    const text = await deps.paths.readFile(path);
    // Without it, a write of it may still have been interrupted.
    if (text === undefined || text.startsWith("/dev/")) await deps.paths.removeFile(path);
  }
}

async function verifyGone(
  deps: NodeDeps,
  volume: Teardown,
  points: readonly string[],
  context: CallContext,
): Promise<void> {
  const table = await deps.mounts.table();
  const mounted = points.find((mountPoint) => mountsAt(table, mountPoint).length > 0);
  const connected = await deps.connector.connected(context);
  const mapped = await Promise.all(volume.nqns.map((nqn) => findMap(deps, nqn)));
  const map = mapped.find((each) => each !== undefined);
  const left = volume.nqns.find((nqn) => connected.includes(nqn));
  if (mounted === undefined && left === undefined && map === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot finish unstaging the volume because a part of it is still here: volume=${volume.volumeId} ` +
      `mounted=${mounted ?? "no"} connected=${left ?? "no"} map=${map?.name ?? "no"}`,
  );
}

function inUse(volume: Teardown, why: string): VolumeError {
  return new VolumeError("in-use", `Cannot unstage the volume because ${why}: volume=${volume.volumeId}`);
}
