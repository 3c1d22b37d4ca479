import type { NodeConfig } from "../config.ts";
import type { MethodsOf } from "../csi/call.ts";
import type { NodeHandlers } from "../csi/generated/csi/v1/Node.ts";
import { nodeMethods } from "../csi/node.ts";
import { SystemBlockDevices } from "../filesystem/block_devices.ts";
import { SystemFilesystems } from "../filesystem/filesystems.ts";
import { SystemMounts } from "../filesystem/mounts.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { Libc } from "../host/libc.ts";
import { systemNetwork } from "../host/network.ts";
import { SystemPaths } from "../host/paths.ts";
import { type Processes, SystemProcesses } from "../host/processes.ts";
import { libcSysfsWriter } from "../host/sysfs_writer.ts";
import { LoopConnector } from "../loop/loop_connector.ts";
import { NodeService } from "../node/node_service.ts";
import type { NodeWorld } from "../node/world.ts";
import { KernelConnector, type Notes } from "../nvme/kernel/kernel_connector.ts";
import { type HostIdentity, hostIdentityOf } from "../volume/host_identity.ts";
import { uncounted } from "../volume/node_events.ts";
import type { BlockDevices, Clock, Connector, Mounts, NodeEvents, Paths } from "../volume/ports.ts";

/** What of the machine a node stands on. */
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
export function systemNodeParts(clock: Clock, notes: Notes, events: NodeEvents = uncounted): NodeParts {
  const onHang = (operation: string) => events.operationHung(operation);
  const processes = new SystemProcesses({ clock, onHang });
  const files = new Libc();
  const paths = new SystemPaths(processes, { clock, files, onHang: () => onHang("file") });
  const mounts = new SystemMounts(processes, files, paths);
  const devices = new SystemBlockDevices(processes, files, clock);
  return { processes, files, paths, clock, mounts, devices, notes, events };
}

/** The node service of a configuration, on this machine's kernel and tools. */
export async function openNode(
  config: NodeConfig,
  { clock, log, events }: { readonly clock: Clock; readonly log: Notes; readonly events: NodeEvents },
): Promise<MethodsOf<NodeHandlers>> {
  const world = openNodeWorld(config, systemNodeParts(clock, log, events));
  await world.paths.makeFolder(config.stateDirectory, 0o700);
  const service = new NodeService(world);
  await service.countStaged();
  return nodeMethods(service);
}

/**
 * Everything that the node service of a configuration works on; nothing is made or changed yet.
 *
 * @param host whom targets are to take this node for, if not by its id
 */
export function openNodeWorld(
  config: NodeConfig,
  parts: NodeParts,
  host: HostIdentity = hostIdentityOf(config.nodeId),
): NodeWorld {
  const { processes, mounts, devices, paths, clock, events } = parts;
  const { nodeId, maxVolumesPerNode, nqnPrefix, stateDirectory: statePath } = config;
  return {
    connector: openConnector(config, parts, host),
    mounts,
    filesystems: new SystemFilesystems(processes),
    devices,
    paths,
    clock,
    events,
    settings: { nodeId, maxVolumesPerNode, nqnPrefix, statePath },
  };
}

/** The one place that knows how this node reaches volumes. */
function openConnector(config: NodeConfig, parts: NodeParts, host: HostIdentity): Connector {
  if (config.connector === "loop") {
    return new LoopConnector({
      ...parts,
      backingPath: config.loopBacking,
      statePath: `${config.stateDirectory}/loop`,
    });
  }
  return new KernelConnector({
    ...parts,
    attributes: libcSysfsWriter,
    resolve: systemNetwork(parts.clock).resolve,
    host,
    nqnPrefix: config.nqnPrefix,
  });
}
