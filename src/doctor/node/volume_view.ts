import { isReadOnlyDevice } from "../../filesystem/contents.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { type Observation, observe } from "../../node/connections/observe.ts";
import { mountsAt } from "../../node/mount_table.ts";
import { prove, proveStaged } from "../../node/connections/device.ts";
import { stateFileName } from "../../node/state/state_file_name.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { nodeVolumeHealth } from "../../node/health/volume_health.ts";
import type { NodeDeps } from "../../node/deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { DeviceUser } from "../../volume/model/host/device_user.ts";
import type { HealthProblem } from "../../volume/model/health/health.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Connection, DeviceNode, FoundDevice, MountEntry } from "../../volume/ports/node_ports.ts";
import { type NodeVolume, stagingStateOf } from "./volumes.ts";

/** A path where a volume should be mounted or bound. */
export interface MountView {
  readonly path: string;
  readonly role: "staging" | "published";
  /** The visible mount there; undefined when there is none. */
  readonly entry: MountEntry | undefined;
  /** The device that is mounted, or of a bound node; undefined when it is unknown. */
  readonly deviceNumber: string | undefined;
}

/** The device of a volume, as it is now. */
export interface DeviceView {
  readonly found: FoundDevice;
  /** Undefined when it is proven to be the volume; else the difference. */
  readonly mismatch: string | undefined;
  /** Whether the kernel refuses writes; undefined when it is gone. */
  readonly readOnly: boolean | undefined;
}

/** Everything that a node records and reads of a volume. */
export interface VolumeView {
  readonly id: string;
  readonly stateFile: string;
  readonly stagingState: StagingState | undefined;
  /** How the state file is damaged; undefined when it is not. */
  readonly damaged: string | undefined;
  readonly connected: NodeVolume["connected"];
  /** Undefined while there is none that could be used. */
  readonly device: DeviceView | undefined;
  /** Devices of it that are left, or cannot be used now. */
  readonly others: readonly DeviceNode[];
  /** Why its devices are unknown; undefined when they are known. */
  readonly deviceUnclear: string | undefined;
  /** Who has its devices besides its own mounts. */
  readonly users: readonly DeviceUser[];
  readonly mounts: readonly MountView[];
  /** Its problems by the node service's own rule; none without a sound state file. */
  readonly health: readonly HealthProblem[];
}

/** All connections of a view. */
export function connectionsOf({ connected }: Pick<VolumeView, "connected">): readonly Connection[] {
  return connected.flatMap(({ connections }) => connections);
}

/** Whether anything of the volume is on this node, or may be. */
export function isHere({ stagingState, damaged, connected, others, deviceUnclear }: VolumeView): boolean {
  return stagingState !== undefined || damaged !== undefined || connected.length > 0 || others.length > 0 ||
    deviceUnclear !== undefined;
}

/** The adapters for reading a volume. */
export interface ViewAdapters {
  readonly deps: NodeDeps;
  readonly files: KernelFiles;
  /** How far to search for the users of the devices. */
  readonly depth: "shown" | "everything";
}

/** Reads everything about a volume. It opens no device, and waits for no dead one. */
export async function viewVolume(
  adapters: ViewAdapters,
  volume: NodeVolume,
  context: CallContext,
): Promise<VolumeView> {
  const { deps } = adapters;
  const stagingState = stagingStateOf(volume);
  const seen = await observed(adapters, volume, stagingState, context);
  const { chains: [chain], devices, users } = typeof seen === "string" ? nothing : seen;
  const device = chain?.used;
  const mounts = await viewMounts(deps, stagingState, context);
  const isPublishedRaw = stagingState?.intent.kind === "block" && stagingState.here.published.length > 0;
  const isOwn = (user: DeviceUser) =>
    (user.by === "mount" || user.by === "bind") &&
    (mounts.some(({ path }) => path === user.at) || isPublishedRaw && kubeletsBind.test(user.at));
  return {
    id: volume.id,
    stateFile: `${deps.settings.statePath}/volumes/${stateFileName(volume.id)}`,
    stagingState,
    damaged: volume.stagingState !== undefined && "damaged" in volume.stagingState
      ? volume.stagingState.damaged
      : undefined,
    connected: volume.connected,
    device: device && await viewDevice(adapters, device, stagingState, context),
    others: devices.filter(({ path }) => path !== device?.path),
    deviceUnclear: typeof seen === "string" ? seen : undefined,
    users: users.filter((user) => !isOwn(user)),
    mounts,
    health: stagingState === undefined ? [] : await healthOf(deps, volume.id, context),
  };
}

/** Where the kubelet binds the node of a raw device once more for each pod: it passes that path to no call. */
const kubeletsBind = /\/volumeDevices\/[^/]+\/dev\/[^/]+$/;

const nothing: Pick<Observation, "chains" | "devices" | "users"> = { chains: [], devices: [], users: [] };

/** What an unstage would go by, its state file's export first; or why that is unknown. */
async function observed(
  { deps, depth }: ViewAdapters,
  { id: volumeId, connected }: NodeVolume,
  stagingState: StagingState | undefined,
  context: CallContext,
): Promise<Observation | string> {
  const own = stagingState === undefined ? [] : [stagingState.intent];
  const nqns = [...new Set([...own, ...connected].map(({ nqn }) => nqn))];
  const stagingPaths = own.map(({ stagingPath }) => stagingPath);
  try {
    return await observe(deps, { volumeId, nqns, stagingPaths, stagingState }, depth, context);
  } catch (error) {
    if (VolumeError.is(error, "identity-mismatch") || VolumeError.is(error, "unavailable")) {
      return error.message;
    }
    throw error;
  }
}

/** A failure of the rule's reads is a problem of the volume as well. */
async function healthOf(
  deps: NodeDeps,
  volumeId: string,
  context: CallContext,
): Promise<readonly HealthProblem[]> {
  try {
    return (await nodeVolumeHealth(deps, volumeId, context)).problems;
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    return [{ status: "INACCESSIBLE", reason: "Unknown", message: error.message }];
  }
}

async function viewDevice(
  { deps, files }: ViewAdapters,
  found: FoundDevice,
  stagingState: StagingState | undefined,
  context: CallContext,
): Promise<DeviceView> {
  return {
    found,
    mismatch: await mismatchOf(deps, found, stagingState, context),
    readOnly: isReadOnlyDevice(files, found),
  };
}

/** Without a state file only what the NQN says can be proven. */
async function mismatchOf(
  deps: NodeDeps,
  found: FoundDevice,
  stagingState: StagingState | undefined,
  context: CallContext,
): Promise<string | undefined> {
  try {
    if (stagingState !== undefined) await proveStaged(deps, found, stagingState, context);
    else await prove(deps, found, { nqn: found.nqn, sizeBytes: 0n }, context);
    return undefined;
  } catch (error) {
    if (VolumeError.is(error, "identity-mismatch") || VolumeError.is(error, "unavailable")) {
      return error.message;
    }
    throw error;
  }
}

async function viewMounts(
  deps: NodeDeps,
  stagingState: StagingState | undefined,
  context: CallContext,
): Promise<readonly MountView[]> {
  const table = await deps.mounts.table();
  return await Promise.all((await ownLocations(deps, stagingState)).map(async (location) => {
    const entry = mountsAt(table, location.path).at(-1);
    return { ...location, entry, deviceNumber: await shownDevice(deps, entry, context) };
  }));
}

/** Where the volume should be mounted or bound: a raw block volume is not mounted at its staging path. */
async function ownLocations(deps: NodeDeps, stagingState: StagingState | undefined) {
  if (stagingState === undefined) return [];
  const locations = [
    ...stagingState.intent.kind === "block"
      ? []
      : [{ path: stagingState.intent.stagingPath, role: "staging" as const }],
    ...stagingState.here.published.map(({ targetPath }) => ({
      path: targetPath,
      role: "published" as const,
    })),
  ];
  return await Promise.all(
    locations.map(async ({ path, role }) => ({ path: await deps.paths.mountPoint(path), role })),
  );
}

/** The mount table shows for a bound device node only the file system that it lies in. */
async function shownDevice(
  deps: NodeDeps,
  entry: MountEntry | undefined,
  context: CallContext,
): Promise<string | undefined> {
  if (entry === undefined || !entry.deviceNumber.startsWith("0:")) return entry?.deviceNumber;
  try {
    return (await deps.paths.info(entry.mountPoint, context))?.deviceNumber;
  } catch (error) {
    context.signal.throwIfAborted();
    if (VolumeError.is(error)) return undefined;
    throw error;
  }
}
