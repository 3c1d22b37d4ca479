import { VolumeError } from "../../volume/errors.ts";
import { type DeviceUser, inUse, isInUse } from "../../volume/model/host/device_user.ts";
import { encodeHandle } from "../../volume/model/ids/handles.ts";
import { recordedNumbers, targetsOf } from "../../volume/model/staging/here.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import type { DeviceNode } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { type UserDepth, usersOf, withoutSpared } from "../../volume/rules/host/device_users.ts";
import {
  type DeviceChain,
  findMap,
  findOwnMap,
  type MappedVolume,
  othersBelow,
  readChain,
  type VolumeMap,
} from "../chain/chain.ts";
import { isOnBlockDevice, mountPointOf, mountsAt, mountUser } from "../mount_table.ts";
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
  /** One for each of the volume's NQNs. */
  readonly chains: readonly DeviceChain[];
  /** The devices in use, and a map that is left without its namespace. */
  readonly devices: readonly DeviceNode[];
  /** The staging paths as the kernel writes them. */
  readonly points: readonly string[];
  /** All users of the devices, and of earlier devices that are mounted at those paths, but for the mounts there. */
  readonly users: readonly DeviceUser[];
}

/**
 * Reads what of a volume is on this node, and who uses it.
 *
 * @throws {VolumeError} unavailable when the kernel does not show it; identity-mismatch when an export has several namespaces
 */
export async function observe(
  deps: NodeDeps,
  volume: Teardown,
  depth: UserDepth,
  context: CallContext,
): Promise<Observation> {
  const map = await findOwnMap(deps, volume, context);
  const chains = await Promise.all(volume.nqns.map((nqn) => readChain(deps, nqn, context)));
  const devices = devicesOf(chains, map);
  // One runs a tool to resolve the paths, the other reads /proc for open devices, so they run at the same time.
  const [points, ...users] = await Promise.all([
    mountPoints(deps, volume.stagingPaths),
    ...devices.map((device) => usersOf(deps, device, depth, context)),
    ...chains.filter(({ namespace }) => !isOneOf(devices, namespace)).map((chain) =>
      othersBelow(deps, chain)
    ),
  ]);
  const all = [...users.flat(), ...await usersOfEarlier(deps, points, devices)];
  const others = all.filter((user) => user.by !== "mount" || !points.includes(user.at));
  return { chains, devices, points, users: withoutSpared(deps, others) };
}

/** A `crypt` has one name in all epochs: it counts for those exports whose it is. */
function devicesOf(chains: readonly DeviceChain[], own: VolumeMap | undefined): readonly DeviceNode[] {
  const found = chains.map(({ map, namespace }) =>
    map?.deviceNumber === own?.deviceNumber ? own ?? namespace : namespace
  );
  const all = [...found, own].filter((device) => device !== undefined);
  return [...new Map(all.map((device) => [device.deviceNumber, device])).values()];
}

function isOneOf(devices: readonly DeviceNode[], device: DeviceNode | undefined): boolean {
  return devices.some(({ deviceNumber }) => deviceNumber === device?.deviceNumber);
}

/** Who else has mounted what is mounted at the volume's paths: a device that is not connected any more. */
async function usersOfEarlier(
  deps: NodeDeps,
  points: readonly string[],
  devices: readonly DeviceNode[],
): Promise<readonly DeviceUser[]> {
  const table = await deps.mounts.table();
  const numbers = new Set(
    points.flatMap((mountPoint) => mountsAt(table, mountPoint)).filter(isOnBlockDevice)
      .map(({ deviceNumber }) => deviceNumber),
  );
  for (const { deviceNumber } of devices) numbers.delete(deviceNumber);
  return table.filter(({ deviceNumber }) => numbers.has(deviceNumber)).map(mountUser);
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
  refuseUsers("unstage", volume.volumeId, users);
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
  const published = stagingState === undefined ? [] : targetsOf(stagingState);
  for (const mountPoint of await mountPoints(deps, published)) {
    if (mountsAt(table, mountPoint).length === 0) continue;
    throw new VolumeError(
      "in-use",
      `Cannot unstage the volume because it is published at ${mountPoint}: volume=${volume.volumeId}`,
    );
  }
}

/**
 * Throws while the namespace below a volume's map is bound anywhere. Pods have only the map, so such a bind was left by an
 * earlier device of the same number: its user would write to this volume.
 *
 * @throws {VolumeError} in-use
 */
export async function refuseBound(
  deps: NodeDeps,
  volumeId: string,
  below: DeviceNode,
  context: CallContext,
): Promise<void> {
  const users = await usersOf(deps, below, "shown", context);
  refuseUsers("stage", volumeId, users.filter(({ by }) => by === "bind"));
}

/** @throws {VolumeError} in-use, naming the users of a volume's device and what ends the use, when there are any */
export function refuseUsers(
  verb: "stage" | "unstage",
  volumeId: string,
  users: readonly DeviceUser[],
): void {
  if (!isInUse(users)) return;
  throw inUse(users, (words) => `Cannot ${verb} the volume because ${words}: volume=${volumeId}`);
}
