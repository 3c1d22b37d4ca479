import { isReadOnlyDevice } from "../../filesystem/contents.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { bindsOf, mountsAt } from "../../node/mount_table.ts";
import { usersOf } from "../../volume/rules/host/device_users.ts";
import { prove } from "../../node/connections/device.ts";
import { stateFileName } from "../../node/stage/state_file_name.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { usedBytes } from "../../volume/model/staging/intent.ts";
import { recordedNumbers } from "../../volume/model/staging/here.ts";
import { readChain } from "../../node/chain/chain.ts";
import { nodeVolumeHealth } from "../../node/health/volume_health.ts";
import type { NodeDeps } from "../../node/deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { DeviceUser } from "../../volume/model/host/device_user.ts";
import type { HealthProblem } from "../../volume/model/health/health.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Connection, FoundDevice, MountEntry } from "../../volume/ports/node_ports.ts";
import { type NodeVolume, stagingStateOf } from "./volumes.ts";

/** A path where a volume is mounted or bound, or should be. */
export interface MountView {
  readonly path: string;
  readonly role: "staging" | "published" | "elsewhere";
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
  /** Who uses it besides the volume's own mounts; undefined when that was not searched for. */
  readonly users: readonly DeviceUser[] | undefined;
}

/** Everything that a node records and reads of a volume. */
export interface VolumeView {
  readonly id: string;
  readonly stateFile: string;
  readonly stagingState: StagingState | undefined;
  /** How the state file is damaged; undefined when it is not. */
  readonly damaged: string | undefined;
  readonly connected: NodeVolume["connected"];
  readonly device: DeviceView | undefined;
  /** Why its device is unknown; undefined when it is known. */
  readonly deviceUnclear: string | undefined;
  readonly mounts: readonly MountView[];
  /** Its problems by the node service's own rule; none without a sound state file. */
  readonly health: readonly HealthProblem[];
}

/** All connections of a view. */
export function connectionsOf({ connected }: Pick<VolumeView, "connected">): readonly Connection[] {
  return connected.flatMap(({ connections }) => connections);
}

/** The adapters for reading a volume. */
export interface ViewAdapters {
  readonly deps: NodeDeps;
  readonly files: KernelFiles;
  /** Whether to search for the users of the device: that reads every process of the host. */
  readonly seeksUsers: boolean;
}

/** Reads everything about a volume. It opens no device, and waits for no dead one. */
export async function viewVolume(
  adapters: ViewAdapters,
  volume: NodeVolume,
  context: CallContext,
): Promise<VolumeView> {
  const { deps } = adapters;
  const stagingState = stagingStateOf(volume);
  const found = await deviceOf(deps, stagingState?.intent.nqn ?? volume.connected[0]?.nqn, context);
  const device = typeof found === "string" ? undefined : found;
  return {
    id: volume.id,
    stateFile: `${deps.settings.statePath}/volumes/${stateFileName(volume.id)}`,
    stagingState,
    damaged: volume.stagingState !== undefined && "damaged" in volume.stagingState
      ? volume.stagingState.damaged
      : undefined,
    connected: volume.connected,
    device: device && await viewDevice(adapters, device, stagingState, context),
    deviceUnclear: typeof found === "string" ? found : undefined,
    mounts: await viewMounts(deps, device, stagingState, context),
    health: stagingState === undefined ? [] : await healthOf(deps, volume.id, context),
  };
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

/** The device of a subsystem, or why it is unknown. */
async function deviceOf(
  deps: NodeDeps,
  nqn: string | undefined,
  context: CallContext,
): Promise<FoundDevice | string | undefined> {
  try {
    return nqn === undefined ? undefined : (await readChain(deps, nqn, context)).used;
  } catch (error) {
    if (VolumeError.is(error, "identity-mismatch") || VolumeError.is(error, "unavailable")) {
      return error.message;
    }
    throw error;
  }
}

async function viewDevice(
  { deps, files, seeksUsers }: ViewAdapters,
  found: FoundDevice,
  stagingState: StagingState | undefined,
  context: CallContext,
): Promise<DeviceView> {
  return {
    found,
    mismatch: await mismatchOf(deps, found, stagingState, context),
    readOnly: isReadOnlyDevice(files, found),
    users: seeksUsers ? await usersOf(deps, found, "everything", context) : undefined,
  };
}

/** Without a state file only what the NQN says can be proven. */
async function mismatchOf(
  deps: NodeDeps,
  found: FoundDevice,
  stagingState: StagingState | undefined,
  context: CallContext,
): Promise<string | undefined> {
  const nqn = stagingState?.intent.nqn ?? found.nqn;
  const sizeBytes = stagingState === undefined ? 0n : usedBytes(stagingState.intent);
  const device = stagingState?.here.device;
  try {
    await prove(deps, found, { nqn, sizeBytes, uniqueId: device?.uniqueId ?? "" }, context);
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
  found: FoundDevice | undefined,
  stagingState: StagingState | undefined,
  context: CallContext,
): Promise<readonly MountView[]> {
  const table = await deps.mounts.table();
  const locations = await ownLocations(deps, stagingState);
  const own = locations.map((location) => ({ ...location, entry: mountsAt(table, location.path).at(-1) }));
  const recorded = stagingState === undefined ? [] : recordedNumbers(stagingState.here);
  const numbers = found === undefined ? recorded : [found.deviceNumber];
  const binds = found === undefined ? [] : await bindsOf(deps.paths, table, found, context);
  const elsewhere = [...table.filter((entry) => numbers.includes(entry.deviceNumber)), ...binds]
    .filter(({ mountPoint }) => !locations.some(({ path }) => path === mountPoint))
    .map((entry) => ({ path: entry.mountPoint, role: "elsewhere" as const, entry }));
  return await Promise.all([...own, ...elsewhere].map(async (view) => ({
    ...view,
    deviceNumber: await shownDevice(deps, view.entry, context),
  })));
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
