import type { KernelFiles } from "../../host/kernel_files.ts";
import type { Network } from "../../host/network.ts";
import type { Processes } from "../../host/processes.ts";
import type { NodeDeps } from "../../node/deps.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import type { HostIdentity } from "../../volume/model/host/identity.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Paths, TargetAddress } from "../../volume/ports/node_ports.ts";

/** The options of a check-up of a node. */
export interface NodeCheckOptions {
  readonly config: {
    readonly nodeId: string;
    readonly connector: "nvme-tcp" | "loop";
    readonly stateDirectory: string;
    readonly nqnPrefix: string;
    readonly deviceLayer: DeviceLayer;
  };
  /** The id is only this machine's name, because no flag sets it. */
  readonly nodeIdGuessed: boolean;
  /** What the volumes are. */
  readonly kind: "block" | "directory";
  /** The kubelet's folder. */
  readonly kubeletPath: string;
  /** The addresses of the router's exports; "" for those of this node's volumes. */
  readonly nvmeAddress: string;
  readonly nvmePort: number;
}

/** The adapters of a check-up of a node. */
export interface NodeCheckAdapters {
  readonly files: KernelFiles;
  readonly processes: Processes;
  readonly network: Network;
  readonly paths: Paths;
  /** The node service's dependencies, or why it cannot reach volumes. */
  readonly deps: NodeDeps | string;
  /** Returns the NQNs that a target offers to a host, from its discovery log. */
  discover(at: TargetAddress, host: HostIdentity, context: CallContext): Promise<readonly string[]>;
}

/** The input of a node's checks. */
export interface NodeReading extends NodeCheckAdapters {
  readonly options: NodeCheckOptions;
  readonly context: CallContext;
}
