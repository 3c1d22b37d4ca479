import { VolumeError } from "../../volume/errors.ts";
import { type DeviceUser, inUse, isInUse } from "../../volume/model/host/device_user.ts";
import { encodeHandle } from "../../volume/model/ids.ts";
import { recordedNumbers } from "../../volume/model/staging/here.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import type { DeviceNode } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { usersOf, withoutSpared } from "../../volume/rules/host/device_users.ts";
import { findMap, findOwnMap, type MappedVolume, nodeOf, othersBelow, readChain } from "../chain/chain.ts";
import { isOnBlockDevice, mountPointOf, mountsAt } from "../mount_table.ts";
import type { NodeDeps } from "../deps.ts";

/** The parts of a volume to take down. */
export interface Teardown {
  readonly volumeId: string;
  readonly nqns: readonly string[];
  readonly stagingPaths: readonly string[];
  /** This node's record of the volume; undefined when there is none. */
  readonly stagingState: StagingState | undefined;
}

/** What of a volume is on this node: a value of one moment, which proves nothing later. */
export interface Observation {
  /** The devices in use, and a map that is left without its namespace. */
  readonly devices: readonly DeviceNode[];
  /** The staging paths as the kernel writes them. */
  readonly points: readonly string[];
  /** All users of the devices but the mounts at those paths. */
  readonly users: readonly DeviceUser[];
}

/**
 * Reads what of a volume is on this node, and who uses it.
 *
 * @throws {VolumeError} unavailable when the kernel does not show it
 */
export async function observe(deps: NodeDeps, volume: Teardown, context: CallContext): Promise<Observation> {
  const map = await findOwnMap(deps, volume, context);
  const found = await findAll(deps, volume.nqns, context);
  const isKnown = found.some((device) => device.deviceNumber === map?.deviceNumber);
  const devices = map === undefined || isKnown ? found : [...found, map];
  // One runs a tool to resolve the paths, the other reads /proc for open devices, so they run at the same time.
  const [points, users] = await Promise.all([
    mountPoints(deps, volume.stagingPaths),
    usersOfAll(deps, volume, devices, context),
  ]);
  return { devices, points, users: users.filter((user) => user.by !== "mount" || !points.includes(user.at)) };
}

/**
 * Throws unless a volume may be taken down.
 *
 * @throws {VolumeError} in-use when it is published, bound, mounted elsewhere or open; precondition when something else is
 *   mounted at its staging path
 */
export async function assertUnused(
  deps: NodeDeps,
  volume: Teardown,
  { devices, points, users }: Observation,
): Promise<void> {
  await refuseWhilePublished(deps, volume, points, devices);
  refuseWhileUsed(volume, users);
}

/**
 * What is left on this node of those exports, and at those mount points, for people; undefined when nothing is.
 *
 * @throws {VolumeError} unavailable when the kernel does not show it
 */
export async function whatIsLeft(
  deps: NodeDeps,
  volume: MappedVolume,
  points: readonly string[],
  context: CallContext,
): Promise<string | undefined> {
  const table = await deps.mounts.table();
  const mounted = points.find((mountPoint) => mountsAt(table, mountPoint).length > 0);
  const connected = await deps.connector.connected(context);
  const map = await findOwnMap(deps, volume, context);
  const left = volume.nqns.find((nqn) => connected.includes(nqn));
  if (mounted === undefined && left === undefined && map === undefined) return undefined;
  return `mounted=${mounted ?? "no"} connected=${left ?? "no"} map=${map?.name ?? "no"}`;
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

/** Finds the devices or maps of the subsystems, of those that have one. */
export async function findAll(
  deps: NodeDeps,
  nqns: readonly string[],
  context: CallContext,
): Promise<readonly DeviceNode[]> {
  const found = await Promise.all(nqns.map(async (nqn) => nodeOf(await readChain(deps, nqn, context))));
  return found.filter((device) => device !== undefined);
}

/** Paths of the kubelet as the kernel writes them. */
export async function mountPoints(deps: NodeDeps, paths: readonly string[]): Promise<readonly string[]> {
  return await Promise.all(paths.map((path) => mountPointOf(deps, path)));
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

/** @throws {VolumeError} in-use, naming the users, when there are any */
export function refuseWhileUsed({ volumeId }: Teardown, users: readonly DeviceUser[]): void {
  if (!isInUse(users)) return;
  throw inUse(users, (words) => `Cannot unstage the volume because ${words}: volume=${volumeId}`);
}
