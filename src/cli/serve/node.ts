import type { NodeConfig } from "../config/config.ts";
import { type MethodsOf, VolumeLocks } from "../../csi/server/call.ts";
import type { NodeRpcs } from "../../csi/generated/csi.ts";
import { nodeMethods } from "../../csi/services/node.ts";
import { Cryptsetup } from "../../device_mapper/cryptsetup.ts";
import { DeviceMapper } from "../../device_mapper/device_mapper.ts";
import { SystemBlockDevices } from "../../filesystem/block_devices.ts";
import { SystemFilesystems } from "../../filesystem/filesystems.ts";
import { SystemMounts } from "../../filesystem/mounts.ts";
import { thisMachine } from "../../host/machine.ts";
import { lockFolder, type Release } from "../../host/folder_lock.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { Libc } from "../../host/libc.ts";
import { isEnding, lockHolders } from "../../host/lock_holders.ts";
import { systemNetwork } from "../../host/network.ts";
import { SystemPaths } from "../../host/paths.ts";
import { type Processes, SystemProcesses } from "../../host/processes.ts";
import { LibcSysfsWriter } from "../../host/sysfs_writer.ts";
import { LoopConnector } from "../../loop/loop_connector.ts";
import { PathWatch } from "../../node/connections/path_watch.ts";
import { FenceWatch } from "../../node/fencing/fence_watch.ts";
import { reportMissingLayer } from "../../node/layer/choose_layer.ts";
import { LayerWatch } from "../../node/layer/layer_watch.ts";
import { StagingStore } from "../../node/state/staging_store.ts";
import { TrimWatch } from "../../node/trim/trim_watch.ts";
import { NodeService } from "../../node/node_service.ts";
import type { NodeDeps, NodeNotes } from "../../node/deps.ts";
import { KernelConnector, type Notes } from "../../nvme/kernel/kernel_connector.ts";
import { VolumeError } from "../../volume/errors.ts";
import { hostIdentityOf } from "../../volume/model/host/identity.ts";
import type { BlockDevices, Connector, Mounts, Paths } from "../../volume/ports/node_ports.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { unheard } from "../../volume/ports/event_listener.ts";
import type { NodeEvents } from "../../volume/ports/node_events.ts";

/** The parts of the machine that a node uses. */
export interface NodeParts {
  readonly processes: Processes;
  readonly files: KernelFiles;
  readonly paths: Paths;
  readonly clock: Clock;
  readonly mounts: Mounts;
  readonly devices: BlockDevices;
  readonly notes: Notes;
  readonly events: NodeEvents;
}

/** This machine's kernel and tools. */
export function systemNodeParts(clock: Clock, notes: Notes, events: NodeEvents = unheard): NodeParts {
  const processes = new SystemProcesses({ clock, events });
  const files = new Libc();
  const onHang = () => events.occurred({ kind: "operation-hung", operation: "file" });
  const paths = new SystemPaths(processes, { clock, files, onHang });
  const mounts = new SystemMounts(processes, files, paths, clock);
  const devices = new SystemBlockDevices(processes, files, clock);
  return { processes, files, paths, clock, mounts, devices, notes, events };
}

/** The adapters of a node service. */
export interface NodeAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: NodeNotes;
  readonly events: NodeEvents;
}

/** A node service that is ready to be served. */
export interface OpenNode {
  readonly methods: MethodsOf<NodeRpcs>;
  /** The locks that its calls have to take. */
  readonly locks: VolumeLocks;
  /** Why this node can reach no volume right now, such as a kernel without the transport; undefined when it can. */
  obstacle(): Promise<string | undefined>;
  /** Starts the background work, and returns at once. */
  start(): void;
  /** Stops the background work. */
  close(): Promise<void>;
  /** Lets another process use this node's state, once no call is running. */
  release(): void;
}

/**
 * How long an earlier process may take to end, in milliseconds: a pod that was deleted by force runs on for as long as
 * Kubernetes gives it, 30 s, beside its replacement.
 */
const earlierProcessMs = 45_000;

/**
 * Opens the node service of a configuration, on this machine's kernel and tools, for this process alone: the work of an
 * earlier process, or its undo, would damage what this one stages.
 */
export async function openNode(
  config: NodeConfig,
  { clock, random, log, events }: NodeAdapters,
): Promise<OpenNode> {
  const parts = systemNodeParts(clock, log, events);
  const locks = new VolumeLocks();
  const own = openNodeDeps(config, parts, log);
  const pathWatch = new PathWatch({
    deps: own,
    lock: { tryTake: (keys) => locks.tryTake(keys, "the check of new paths") },
  });
  const deps = { ...own, pathWatch };
  await deps.paths.makeFolder(config.stateDirectory, 0o700);
  const release = await haveState(config.stateDirectory, parts);
  await reportMissingLayer(deps);
  const service = new NodeService(deps);
  await service.countStaged();
  const watch = new FenceWatch({
    deps,
    fencing: service.fencing,
    forgotten: service.forgotten,
    lock: { tryTake: (keys) => locks.tryTake(keys, "the check for fenced volumes") },
    random,
    intervalMs: config.fenceIntervalMs,
  });
  const layerWatch = new LayerWatch({
    deps,
    fencing: service.fencing,
    lock: { tryTake: (keys) => locks.tryTake(keys, "the check of maps") },
  });
  const trimWatch = new TrimWatch({
    deps,
    lock: { tryTake: (keys, onWanted) => locks.tryTake(keys, "a trim, which ends now", onWanted) },
    random,
    intervalMs: config.fstrimIntervalMs,
  });
  return {
    methods: nodeMethods(service),
    locks,
    obstacle: () => service.obstacle(),
    start: () => {
      watch.start();
      layerWatch.start();
      pathWatch.start();
      trimWatch.start();
    },
    close: async () =>
      void await Promise.all([watch, layerWatch, pathWatch, trimWatch].map((each) => each.stop())),
    release,
  };
}

/**
 * Takes the lock of the node's state. A process that was killed and hangs in the kernel keeps its lock, and does
 * nothing any more: it must not keep this node from being served until the kernel gives up. A process that is not seen
 * to end is waited for by the next start.
 *
 * A process that goes on beside such a one takes another lock instead, the first that is free. So each process checks
 * all locks once it has its own: of two that check, at least one sees the other.
 *
 * @throws {VolumeError} precondition when another process holds the state, and goes on or cannot be seen
 */
export async function haveState(folder: string, adapters: StateAdapters): Promise<Release> {
  const { clock, timeoutMs = earlierProcessMs } = adapters;
  const untilMs = clock.monotonicMs() + timeoutMs;
  let [own, mine] = [0, await lockUnlessEnding(folder, lockName(0), untilMs, adapters)];
  while (mine === undefined) mine = await lockUnlessEnding(folder, lockName(++own), untilMs, adapters);
  try {
    for await (const { name } of Deno.readDir(folder)) {
      if (!/^lock(?:-[0-9]+)?$/.test(name) || name === lockName(own)) continue;
      // It was reported above, or blocks nobody.
      (await lockUnlessEnding(folder, name, untilMs, { ...adapters, notes: { warn() {} } }))?.();
    }
    return mine;
  } catch (error) {
    mine();
    throw error;
  }
}

function lockName(at: number): string {
  return at === 0 ? "lock" : `lock-${at}`;
}

/** Returns undefined when only processes hold it that will certainly end. */
async function lockUnlessEnding(
  folder: string,
  name: string,
  untilMs: number,
  { clock, files, notes }: StateAdapters,
): Promise<Release | undefined> {
  try {
    return await lockFolder(folder, clock, untilMs - clock.monotonicMs(), name);
  } catch (error) {
    if (!VolumeError.is(error, "precondition")) throw error;
    const holders = lockHolders(files, BigInt((await Deno.stat(`${folder}/${name}`)).ino!));
    if (!(holders?.every((pid) => isEnding(files, pid)) ?? false)) throw error;
    notes.warn(
      "a killed process that hangs in the kernel holds the lock of this node's state; serving without the lock",
      {
        pids: holders!.join(","),
        reason: error.message,
      },
    );
    return undefined;
  }
}

interface StateAdapters {
  readonly clock: Clock;
  readonly files: KernelFiles;
  readonly notes: Notes;
  readonly timeoutMs?: number;
}

/** Makes the dependencies of a configuration's node service; it makes and changes nothing on the machine. */
export function openNodeDeps(config: NodeConfig, parts: NodeParts, notes?: NodeNotes): NodeDeps {
  const { processes, files, mounts, devices, paths, clock, events } = parts;
  const { nodeId, maxVolumesPerNode, nqnPrefix, stateDirectory: statePath, fenceSettleMs, topology } = config;
  const { deviceLayer } = config;
  const maps = new DeviceMapper(processes, files);
  // Volumes that were staged with a map are unstaged with it, whatever the setting is now.
  const mapping = { maps, encryption: new Cryptsetup(processes, files, maps, clock) };
  return {
    connector: openConnector(config, parts),
    mounts,
    filesystems: new SystemFilesystems(processes, { files, clock }),
    devices,
    ...config.connector === "nvme-tcp" ? mapping : {},
    paths,
    stagingStore: new StagingStore({ paths, clock, events, statePath, notes }),
    machine: thisMachine(files),
    clock,
    events,
    settings: { nodeId, maxVolumesPerNode, nqnPrefix, statePath, fenceSettleMs, topology, deviceLayer },
    ...notes === undefined ? {} : { notes },
  };
}

/** The one place that chooses how this node connects volumes. */
function openConnector(config: NodeConfig, parts: NodeParts): Connector {
  if (config.connector === "loop") {
    return new LoopConnector({
      ...parts,
      backingPath: config.loopBacking,
      statePath: `${config.stateDirectory}/loop`,
    });
  }
  return new KernelConnector({
    ...parts,
    attributes: new LibcSysfsWriter(),
    resolve: systemNetwork(parts.clock).resolve,
    host: hostIdentityOf(config.nodeId),
    nqnPrefix: config.nqnPrefix,
  });
}
