import type { NodeConfig } from "../config.ts";
import type { MethodsOf } from "../csi/call.ts";
import type { NodeHandlers } from "../csi/generated/csi/v1/Node.ts";
import { nodeMethods } from "../csi/node.ts";
import { SystemBlockDevices } from "../filesystem/block_devices.ts";
import { SystemFilesystems } from "../filesystem/filesystems.ts";
import { SystemMounts } from "../filesystem/mounts.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { Libc } from "../host/libc.ts";
import { SystemPaths } from "../host/paths.ts";
import { type Processes, SystemProcesses } from "../host/processes.ts";
import { LoopConnector } from "../loop/loop_connector.ts";
import { NodeService } from "../node/node_service.ts";
import { VolumeError } from "../volume/errors.ts";
import type { Clock, Connector, Paths } from "../volume/ports.ts";

/** What of the machine the node service stands on. */
interface NodeParts {
  readonly processes: Processes;
  readonly files: KernelFiles;
  readonly paths: Paths;
  readonly clock: Clock;
}

/**
 * The node service of a configuration, on this machine's kernel and tools.
 *
 * @throws {VolumeError} unsupported when this version has no such connector
 */
export async function openNode(
  config: NodeConfig,
  { clock }: { readonly clock: Clock },
): Promise<MethodsOf<NodeHandlers>> {
  const processes = new SystemProcesses({ clock });
  const paths = new SystemPaths(processes);
  const parts = { processes, files: new Libc(), paths, clock };
  const connector = openConnector(config, parts);
  await paths.makeFolder(config.stateDirectory, 0o700);
  const { nodeId, maxVolumesPerNode, nqnPrefix, stateDirectory: statePath } = config;
  return nodeMethods(
    new NodeService({
      connector,
      mounts: new SystemMounts(processes, parts.files, paths),
      filesystems: new SystemFilesystems(processes),
      devices: new SystemBlockDevices(processes, parts.files, clock),
      paths,
      clock,
      settings: { nodeId, maxVolumesPerNode, nqnPrefix, statePath },
    }),
  );
}

/** The one place that knows how this node reaches volumes. */
function openConnector(config: NodeConfig, parts: NodeParts): Connector {
  if (config.connector === "loop") {
    return new LoopConnector({
      ...parts,
      backingPath: config.loopBacking,
      statePath: `${config.stateDirectory}/loop`,
    });
  }
  throw new VolumeError(
    "unsupported",
    `Cannot serve the node as this version has no such connector: connector=${config.connector}; it has loop, for the ` +
      "simulator",
  );
}
