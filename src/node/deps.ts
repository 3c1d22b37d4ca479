import type {
  BlockDevices,
  Connector,
  Filesystems,
  Machine,
  Mounts,
  Paths,
} from "../volume/ports/node_ports.ts";
import type { Encryption } from "../volume/ports/encryption.ts";
import type { DeviceMaps } from "../volume/ports/device_maps.ts";
import type { Clock } from "../volume/ports/system.ts";
import type { DeviceLayer } from "../volume/model/device_layer.ts";
import type { NodeEvents } from "../volume/ports/node_events.ts";
import type { StagingStore } from "./state/staging_store.ts";

/** Settings that stay the same for the life of a node service. */
export interface NodeSettings {
  readonly nodeId: string;
  /** 0 leaves the limit to the orchestrator. */
  readonly maxVolumesPerNode: number;
  /** The node's topology segments, see CSI specification, Topology. @default {no topology is reported} */
  readonly topology?: Readonly<Record<string, string>>;
  /** Folder of the state files; it survives reboots, and no two nodes share one. */
  readonly statePath: string;
  /** The prefix of all volumes' NQNs, without the colon after it. */
  readonly nqnPrefix: string;
  /**
   * How long a volume must be missing from its target before it counts as fenced, in milliseconds. @default {120000}
   */
  readonly fenceSettleMs?: number;
  /** Whether volumes get a device-mapper map between their device and its users. @default {"none"} */
  readonly deviceLayer?: DeviceLayer;
}

/** Messages for people, besides the answers of calls. */
export interface NodeNotes {
  info(message: string, fields: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields: Readonly<Record<string, unknown>>): void;
}

/** Keeps out the calls that change a volume. */
export interface VolumeLock {
  /**
   * Takes the lock of a volume and its paths. Returns a function that releases it; undefined while a call holds it.
   * When a call is refused the lock meanwhile, `onWanted` is called, so that a holder that can stop early does.
   */
  tryTake(keys: readonly string[], onWanted?: () => void): (() => void) | undefined;
}

/** The ports and settings that the node service works with. */
export interface NodeDeps {
  readonly connector: Connector;
  readonly mounts: Mounts;
  readonly filesystems: Filesystems;
  readonly devices: BlockDevices;
  /** Absent where no volume uses a device layer. */
  readonly maps?: DeviceMaps;
  /** Absent where no volume can be encrypted. */
  readonly encryption?: Encryption;
  readonly paths: Paths;
  readonly stagingStore: StagingStore;
  readonly machine: Machine;
  /** Adds the paths that a volume lacks after its stage; absent where nothing does. */
  readonly pathWatch?: { lacking(): void };
  readonly clock: Clock;
  /** Receives the events that are counted. */
  readonly events: NodeEvents;
  readonly settings: NodeSettings;
  readonly notes?: NodeNotes;
}
