import type {
  BlockDevices,
  Connector,
  Filesystems,
  Machine,
  Mounts,
  Paths,
} from "../volume/ports/node_ports.ts";
import type { DeviceMaps } from "../volume/ports/device_maps.ts";
import type { Clock } from "../volume/ports/system.ts";
import type { DeviceLayer } from "../volume/model/device_layer.ts";
import type { NodeEvents } from "../volume/ports/node_events.ts";

/** What is fixed for the life of a node service. */
export interface NodeSettings {
  readonly nodeId: string;
  /** 0 leaves it to the orchestrator. */
  readonly maxVolumesPerNode: number;
  /** Where it is, see CSI specification, Topology. @default {nothing is told of that} */
  readonly topology?: Readonly<Record<string, string>>;
  /** Folder of the state files; it survives reboots, and no two nodes share one. */
  readonly statePath: string;
  /** What the NQNs of all volumes begin with, without the colon after it. */
  readonly nqnPrefix: string;
  /** How long a volume's target has to lack it before it counts as fenced, in milliseconds. @default {120000} */
  readonly fenceSettleMs?: number;
  /** Whether volumes get a map between their device and its user. @default {"none"} */
  readonly deviceLayer?: DeviceLayer;
}

/** What is worth telling a person, beside the answers of calls. */
export interface NodeNotes {
  info(message: string, fields: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields: Readonly<Record<string, unknown>>): void;
}

/** Keeps out the calls that change a volume. */
export interface VolumeLock {
  /**
   * Takes the lock of a volume and its paths, and answers how to let go of it; undefined while a call holds it. Whoever
   * can stop early is told by `onWanted` when a call was refused the lock.
   */
  tryTake(keys: readonly string[], onWanted?: () => void): (() => void) | undefined;
}

/** Everything outside that the node service works on. */
export interface NodeDeps {
  readonly connector: Connector;
  readonly mounts: Mounts;
  readonly filesystems: Filesystems;
  readonly devices: BlockDevices;
  /** Absent where volumes are reached without such a layer. */
  readonly maps?: DeviceMaps;
  readonly paths: Paths;
  readonly machine: Machine;
  readonly clock: Clock;
  /** Hears of what is worth counting. */
  readonly events: NodeEvents;
  readonly settings: NodeSettings;
  readonly notes?: NodeNotes;
}
