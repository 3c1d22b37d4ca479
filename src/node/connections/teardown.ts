import { VolumeError } from "../../volume/errors.ts";
import { type DeviceUser, inUse, isInUse } from "../../volume/model/host/device_user.ts";
import { encodeHandle } from "../../volume/model/ids.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DeviceNode } from "../../volume/ports/node_ports.ts";
import { type StagingState, withHere } from "../../volume/model/staging/state.ts";
import { recordedNumbers } from "../../volume/model/staging/here.ts";
import { isOnBlockDevice, mountPointOf, mountsAt } from "../mount_table.ts";
import { findMap, findOwnMap, nodeOf, othersBelow, readChain } from "../chain/chain.ts";
import { removeOwnMap } from "../chain/map.ts";
import type { NodeDeps } from "../deps.ts";
import { usersOf, withoutSpared } from "../../volume/rules/host/device_users.ts";
import { endLivingFilesystem } from "./living_filesystem.ts";
import { unmountLast } from "./last_unmount.ts";

/** The parts of a volume to take down. */
export interface Teardown {
  readonly volumeId: string;
  readonly nqns: readonly string[];
  readonly stagingPaths: readonly string[];
  /** This node's record of the volume; undefined when there is none. */
  readonly stagingState: StagingState | undefined;
}

/**
 * Returns the content of the file that names the device; undefined when there is none. Reading a link or a device may
 * never end.
 */
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
 * Takes a volume off this node: refuses while it is in use, then unmounts, flushes and disconnects. It returns only
 * when neither the mount table nor the connector shows the volume.
 *
 * It goes by what the kernel shows, so it can be repeated after any failure.
 *
 * @throws {VolumeError} in-use when the volume is published, bound, mounted elsewhere or open; precondition when
 *   something else is mounted at the staging path
 */
export async function tearDown(deps: NodeDeps, volume: Teardown, context: CallContext): Promise<void> {
  const map = await findOwnMap(deps, volume, context);
  const devices = await findAll(deps, volume.nqns, context);
  const isKnown = devices.some((device) => device.deviceNumber === map?.deviceNumber);
  const found = map === undefined || isKnown ? devices : [...devices, map];
  // One runs a tool to resolve the paths, the other reads /proc for open devices, so they run at the same time.
  const [points, users] = await Promise.all([
    mountPoints(deps, volume.stagingPaths),
    usersOfAll(deps, volume, found, context),
  ]);
  await refuseWhilePublished(deps, volume, points, found);
  refuseWhileUsed(volume, users.filter((user) => user.by !== "mount" || !points.includes(user.at)));
  const { stagingState } = volume;
  // From here on the volume must not be published, even if this call fails later.
  if (stagingState !== undefined) await deps.stagingStore.write(withHere(stagingState, { staged: false }));
  // The staging path of a mounted volume holds the volume's own files, so the device file is not looked for there.
  if (stagingState === undefined || stagingState.intent.kind === "block") {
    await removeDeviceFiles(deps, volume.stagingPaths, points, context);
  }
  for (const mountPoint of points) {
    context.signal.throwIfAborted();
    await unmountLast(deps, mountPoint, context);
  }
  await refuseWhileClaimed(deps, volume, found, context);
  await removeOwnMap(deps, volume, context);
  for (const nqn of volume.nqns) {
    context.signal.throwIfAborted();
    await disconnect(deps, nqn, context);
  }
  await verifyGone(deps, volume, points, context);
}

/**
 * The volume's NQNs, of any epoch, that are connected or still have a map. Without a state file they are all that is
 * known.
 */
export async function connectedNqns(
  deps: NodeDeps,
  volumeId: string,
  context: CallContext,
): Promise<readonly string[]> {
  const own = `${deps.settings.nqnPrefix}:${encodeHandle(volumeId)}`;
  const mapped = (await findMap(deps, volumeId))?.nqn;
  const connected = new Set(await deps.connector.connected(context));
  if (mapped !== undefined) connected.add(mapped);
  // A name with more parts belongs to another router, whose name may equal this volume's.
  const isEpoch = (nqn: string) => nqn.startsWith(`${own}:`) && !nqn.slice(own.length + 1).includes(":");
  return [...connected].filter((nqn) => nqn === own || isEpoch(nqn));
}

/**
 * Undoes a connect. A device stays connected if it could not be unmounted before, or is mounted where this process
 * cannot see it: its unwritten data would be lost silently.
 *
 * @throws {VolumeError} in-use while the device is mounted or claimed
 */
export async function disconnectUnused(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  await disconnectFree(deps, nqn, "claimed", context);
}

/**
 * Disconnects what was connected without a record, like {@linkcode disconnectUnused}. Nothing says here that no pod has it,
 * and a raw device is used without a mount and without a claim: so it also stays while it is bound or open anywhere.
 *
 * @throws {VolumeError} in-use while the device is mounted, claimed, bound or open
 */
export async function disconnectUnrecorded(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  await disconnectFree(deps, nqn, "unused", context);
}

async function disconnectFree(
  deps: NodeDeps,
  nqn: string,
  depth: "claimed" | "unused",
  context: CallContext,
): Promise<void> {
  const device = nodeOf(await readChain(deps, nqn, context));
  if (device !== undefined) {
    const users = await usersOf(deps, device, depth, context);
    context.signal.throwIfAborted();
    const inTheWay = withoutSpared(deps, users).filter(({ by }) => depth === "unused" || by !== "bind");
    if (isInUse(inTheWay)) {
      throw inUse(inTheWay, (words) => `Cannot disconnect because the device is in use: nqn=${nqn} ${words}`);
    }
  }
  await disconnect(deps, nqn, context);
}

/** Removes the map of an unused subsystem, and then disconnects it. */
async function disconnect(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  const volumeId = parseExportNqn(nqn, deps.settings.nqnPrefix)?.volumeId;
  if (volumeId !== undefined) await removeOwnMap(deps, { volumeId, nqns: [nqn] }, context);
  await deps.connector.disconnect(nqn, context);
}

async function mountPoints(deps: NodeDeps, paths: readonly string[]): Promise<readonly string[]> {
  return await Promise.all(paths.map((path) => mountPointOf(deps, path)));
}

/** Finds the devices or maps of the subsystems, of those that have one. */
export async function findAll(
  deps: NodeDeps,
  nqns: readonly string[],
  context: CallContext,
): Promise<readonly DeviceNode[]> {
  const found = await Promise.all(nqns.map(async (nqn) => nodeOf(await readChain(deps, nqn, context))));
  return found.filter((device) => device !== undefined);
}

async function refuseWhilePublished(
  deps: NodeDeps,
  volume: Teardown,
  points: readonly string[],
  found: readonly DeviceNode[],
): Promise<void> {
  const table = await deps.mounts.table();
  const staged = points.flatMap((mountPoint) => mountsAt(table, mountPoint));
  const { stagingState } = volume;
  const recorded = stagingState === undefined ? [] : recordedNumbers(stagingState.here);
  // A record that was begun after another was lost, and names no device yet, says no more than none.
  const own = recorded.length === 0 ? undefined : [...recorded, ...found.map((it) => it.deviceNumber)];
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
  const published = stagingState?.here.published.map(({ targetPath }) => targetPath) ?? [];
  for (const mountPoint of await mountPoints(deps, published)) {
    if (mountsAt(table, mountPoint).length === 0) continue;
    throw new VolumeError(
      "in-use",
      `Cannot unstage the volume because it is published at ${mountPoint}: volume=${volume.volumeId}`,
    );
  }
  // Of an earlier device of the volume, which is not connected any more.
  const numbers = new Set(staged.map(({ deviceNumber }) => deviceNumber));
  const elsewhere = table.filter((entry) =>
    numbers.has(entry.deviceNumber) && !points.includes(entry.mountPoint)
  );
  refuseWhileUsed(
    volume,
    elsewhere.map((entry) => ({ device: entry.source, by: "mount", at: entry.mountPoint })),
  );
}

/** All uses of the devices, and of the namespaces below maps, but those that may be there or not. */
async function usersOfAll(
  deps: NodeDeps,
  { nqns, stagingState }: Teardown,
  found: readonly DeviceNode[],
  context: CallContext,
): Promise<readonly DeviceUser[]> {
  const users: DeviceUser[] = [];
  for (const device of found) users.push(...await usersOf(deps, device, "open", context));
  if (stagingState === undefined || stagingState.intent.map !== undefined) {
    for (const nqn of nqns) users.push(...await othersBelow(deps, nqn, found, context));
  }
  return withoutSpared(deps, users);
}

/**
 * After this driver's mounts are gone, a claim belongs to another user: a mount in another namespace, or what a node that
 * scans raw devices has made of a workload's data.
 */
async function refuseWhileClaimed(
  deps: NodeDeps,
  volume: Teardown,
  found: readonly DeviceNode[],
  context: CallContext,
): Promise<void> {
  for (const device of found) {
    let users = await usersOf(deps, device, "claimed", context);
    if (await endLivingFilesystem(deps, volume.stagingState, device, users, context)) {
      users = await usersOf(deps, device, "claimed", context);
    }
    context.signal.throwIfAborted();
    refuseWhileUsed(volume, users.filter(({ by }) => by !== "bind"));
  }
}

function refuseWhileUsed({ volumeId }: Teardown, users: readonly DeviceUser[]): void {
  if (!isInUse(users)) return;
  throw inUse(users, (words) => `Cannot unstage the volume because ${words}: volume=${volumeId}`);
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
    // A staging that was killed may have left an unfinished temporary file of it.
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
  const map = await findOwnMap(deps, volume, context);
  const left = volume.nqns.find((nqn) => connected.includes(nqn));
  if (mounted === undefined && left === undefined && map === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot finish unstaging the volume because a part of it is still here: volume=${volume.volumeId} ` +
      `mounted=${mounted ?? "no"} connected=${left ?? "no"} map=${map?.name ?? "no"}`,
  );
}
