import type { Filesystems, Paths } from "../../volume/ports/node_ports.ts";
import type { NfsMounts } from "../../volume/ports/nfs_ports.ts";
import type { NodeEvents } from "../../volume/ports/node_events.ts";
import type { Clock } from "../../volume/ports/system.ts";
import type { NodeNotes, NodeSettings } from "../deps.ts";

/** The ports and settings that the node service of shared directories works with. */
export interface DirectoryNodeDeps {
  readonly nfs: NfsMounts;
  readonly filesystems: Pick<Filesystems, "stats">;
  readonly paths: Paths;
  readonly clock: Clock;
  readonly events: NodeEvents;
  readonly settings: Pick<NodeSettings, "nodeId" | "maxVolumesPerNode" | "topology" | "statePath">;
  readonly notes: NodeNotes;
}
