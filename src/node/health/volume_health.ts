import { VolumeError } from "../../volume/errors.ts";
import { describeUser, layerName } from "../../volume/model/host/device_user.ts";
import type { VolumeHealth } from "../../volume/model/health/health.ts";
import { judgeNodeHealth, type NodeReading, type Shown } from "../../volume/rules/health/node_health.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Connection, FoundDevice, MountEntry } from "../../volume/ports/node_ports.ts";
import type { PublishedTarget, StagingState } from "../../volume/model/staging/state.ts";
import { proveStaged } from "../connections/device.ts";
import type { RecentConnections } from "../connections/recent_connections.ts";
import { chainOf, type DeviceChain, findMapOf, othersBelow, readChain } from "../chain/chain.ts";
import { assertEncrypts } from "../chain/map.ts";
import { mountsAt } from "../mount_table.ts";
import { filesystemStats } from "./stats.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeDeps } from "../deps.ts";

/** How long all reads together may take; more than they need. */
const limitMs = 15_000;
/** How long a single path may take to answer before it counts as silent; well below the total. */
const silenceMs = 5_000;

/** What a look after a volume may do besides. */
export interface HealthOptions {
  /** Whether a block is read of a device whose errors the kernel does not show, of xfs. @default {false} */
  readonly readsDevice?: boolean;
  /** What the looks after all volumes share; by default each reads for itself. */
  readonly recent?: RecentConnections;
}

/**
 * The problems of a volume as this node sees them; none when it is healthy. It reads what the kernel shows and changes
 * nothing.
 *
 * @throws {VolumeError} not-found when this node has no record of it; unavailable or deadline when the kernel does not
 *   show its connections or mounts
 */
export async function nodeVolumeHealth(
  deps: NodeDeps,
  volumeId: string,
  context: CallContext,
  options: HealthOptions = {},
): Promise<VolumeHealth> {
  const what = `look after the volume: volume=${volumeId}`;
  return await withDeadline(deps.clock, context, limitMs, what, async (limited) => {
    const stagingState = await findStagingState(deps, volumeId);
    if (typeof stagingState === "string") {
      const damaged = { status: "INACCESSIBLE", reason: "StateDamaged", message: stagingState } as const;
      return { id: volumeId, problems: [damaged] };
    }
    const reading = await readAt(deps, stagingState, limited, options);
    const problems = judgeNodeHealth(reading);
    if (stagingState.here.staged) {
      deps.events.occurred({ kind: "connections", volumeId, connections: reading.connections });
      deps.events.occurred({ kind: "health", volumeId, problems });
    }
    return { id: volumeId, problems };
  });
}

/** This node's record of the volume, or what is wrong with that record. */
async function findStagingState(deps: NodeDeps, volumeId: string): Promise<StagingState | string> {
  try {
    const stagingState = await deps.stagingStore.find(volumeId);
    if (stagingState !== undefined) return stagingState;
  } catch (error) {
    if (VolumeError.is(error, "precondition")) return error.message;
    throw error;
  }
  throw new VolumeError("not-found", `Cannot find the volume on this node: volume=${volumeId}`);
}

/** A volume's connections and the devices that stand on them. */
interface Reached {
  readonly connections: readonly Connection[];
  readonly chain: DeviceChain;
}

async function readReached(
  deps: NodeDeps,
  { intent: { nqn } }: StagingState,
  context: CallContext,
): Promise<Reached> {
  const [connections, chain] = await Promise.all([
    deps.connector.connections(nqn, context),
    readChain(deps, nqn, context),
  ]);
  return { connections, chain };
}

/**
 * What was read of all volumes within the last second, as long as it shows nothing but the staged device and live paths.
 * Undefined otherwise: no trouble is reported that may be over.
 */
async function recentlyReached(
  deps: NodeDeps,
  { intent: { nqn, map, addresses }, here }: StagingState,
  recent: RecentConnections,
): Promise<Reached | undefined> {
  try {
    const [connections, namespace] = await Promise.all([recent.to(nqn), recent.deviceOf(nqn)]);
    const isWhole = connections.length >= Math.max(1, new Set(addresses).size) &&
      connections.every(({ state }) => state === "live");
    if (!isWhole) return undefined;
    // To find that there is no map, all devices have to be listed. One that should not be there shows as a user.
    const chain = chainOf(namespace, map && await findMapOf(deps, nqn));
    const isStaged = chain.used !== undefined && chain.used.deviceNumber === here.device?.deviceNumber;
    return isStaged ? { connections, chain } : undefined;
  } catch (error) {
    // Something of another volume may be unreadable.
    if (VolumeError.is(error)) return undefined;
    throw error;
  }
}

async function readAt(
  deps: NodeDeps,
  stagingState: StagingState,
  context: CallContext,
  { readsDevice = false, recent }: HealthOptions,
): Promise<NodeReading> {
  const { mounts, paths } = deps;
  const [reached, table] = await Promise.all([
    recent && recentlyReached(deps, stagingState, recent),
    mounts.table(),
  ]);
  const { connections, chain } = reached ?? await readReached(deps, stagingState, context);
  const { namespace, map, used: device } = chain;
  const mountPoint = await paths.mountPoint(stagingState.intent.stagingPath);
  const mount = stagingState.intent.kind === "block" ? undefined : mountsAt(table, mountPoint).at(-1);
  const waits = map?.kind === "multipath";
  const isLive = connections.some(({ state }) => state === "live");
  const mounted = device !== undefined && mount?.deviceNumber === device.deviceNumber ? device : undefined;
  const [mismatch, silence, layers, errors, refusesReads, targets] = await Promise.all([
    device && mismatchOf(deps, stagingState, device, context),
    mount && silenceOf(deps, mount, context),
    device === undefined ? [] : layersOf(deps, device, chain),
    mounted && deps.devices.filesystemErrors(mounted),
    // The read would wait for a device without a live path.
    mounted && mount?.filesystem === "xfs" && readsDevice && isLive
      ? deps.devices.refusesReads(mounted, context)
      : undefined,
    Promise.all(
      stagingState.here.published.map((target) => readTarget(deps, stagingState, table, target, context)),
    ),
  ]);
  return {
    stagingState,
    connections,
    device,
    waits,
    returned: waits && device === undefined ? namespace : undefined,
    mismatch,
    mount,
    silence,
    layers,
    errors,
    refusesReads,
    targets,
  };
}

async function layersOf(deps: NodeDeps, device: FoundDevice, chain: DeviceChain): Promise<readonly string[]> {
  const users = await deps.devices.layers([device, ...await deps.devices.partitions(device)]);
  const all = [...users, ...await othersBelow(deps, chain)];
  return all.map((user) => user.by === "layer" ? layerName(user) : describeUser(user).words);
}

async function mismatchOf(
  deps: NodeDeps,
  stagingState: StagingState,
  device: FoundDevice,
  context: CallContext,
): Promise<string | undefined> {
  try {
    await proveStaged(deps, device, stagingState, context);
    if (stagingState.intent.map === "crypt") await assertEncrypts(deps, stagingState.volumeId, context);
    return undefined;
  } catch (error) {
    const isNotYetProven = stagingState.intent.map === "multipath" && VolumeError.is(error, "unavailable");
    if (isNotYetProven || VolumeError.is(error, "identity-mismatch")) return error.message;
    throw error;
  }
}

/** A file system whose device is dead can be mounted, and look healthy in the mount table. */
async function silenceOf(
  deps: NodeDeps,
  mount: MountEntry,
  context: CallContext,
): Promise<string | undefined> {
  const asked = await answerOf(
    deps,
    context,
    (limited) => filesystemStats(deps, mount.mountPoint, limited),
  );
  return asked.reason;
}

async function readTarget(
  deps: NodeDeps,
  stagingState: StagingState,
  table: readonly MountEntry[],
  { targetPath }: PublishedTarget,
  context: CallContext,
): Promise<{ readonly targetPath: string; readonly shown: Shown }> {
  const top = mountsAt(table, await deps.paths.mountPoint(targetPath)).at(-1);
  if (top === undefined) return { targetPath, shown: { state: "nothing" } };
  if (stagingState.intent.kind !== "block") {
    return { targetPath, shown: { state: "device", deviceNumber: top.deviceNumber } };
  }
  const { value, reason } = await answerOf(
    deps,
    context,
    (limited) => deps.paths.info(targetPath, limited),
  );
  if (reason !== undefined) return { targetPath, shown: { state: "silent", reason } };
  return { targetPath, shown: { state: "device", deviceNumber: value?.deviceNumber } };
}

/** The answer of a path, or why there is none. The end of the call itself is thrown. */
async function answerOf<T>(
  deps: NodeDeps,
  context: CallContext,
  ask: (limited: CallContext) => Promise<T>,
): Promise<{ readonly value?: T; readonly reason?: string }> {
  try {
    return { value: await withDeadline(deps.clock, context, silenceMs, "get an answer", ask) };
  } catch (error) {
    context.signal.throwIfAborted();
    if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline")) {
      return { reason: error.message };
    }
    throw error;
  }
}
