import type { DeviceNode, ProvenDevice } from "./node_ports.ts";
import type { CallContext } from "./system.ts";

/** What a volume's map is called. */
export interface MapIdentity {
  readonly name: string;
  /** Names the volume and its epoch. */
  readonly uuid: string;
}

/** A map as the kernel shows it: a device that keeps its number, whatever becomes of the device below it. */
export interface DeviceMap extends MapIdentity, DeviceNode {
  /** 0 while it has no table. */
  readonly sizeBytes: bigint;
  /** Numbers of the devices below it: that of its table, and that of a loaded one that is not used yet. */
  readonly below: readonly string[];
  readonly suspended: boolean;
  /** Reads and writes that have begun and not ended. */
  readonly pending: number;
  /** Reads and writes that have ended since it was made. */
  readonly completed: number;
}

/** What a map does with I/O. */
export interface MapTable {
  /** Whether I/O waits while no path works. */
  readonly queues: boolean;
  /** Number of its only path. */
  readonly path: string;
  /** Whether I/O has failed on that path since the map was loaded with it. */
  readonly failed: boolean;
}

/** Options of {@linkcode DeviceMaps.reload}. */
export interface ReloadOptions {
  /**
   * Refuses, with `unavailable`, a map whose queueing was ended by this process, also while the reload runs: it fails what is
   * written to it then. @default {false}
   */
  readonly unlessEnded?: boolean;
}

/** Maps between a volume's device and its user, which let I/O wait while the device is gone. */
export interface DeviceMaps {
  /** Why this node can make none, for people; undefined when it can. */
  obstacle(context: CallContext): Promise<string | undefined>;
  /** The map of that name, of whatever UUID; undefined when there is none. Starts no process. */
  find(name: string): Promise<DeviceMap | undefined>;
  /** All maps of this driver, by their UUIDs, of any export. Starts no process. */
  list(): Promise<readonly DeviceMap[]>;
  /** What the map does with I/O right now. Throws `unavailable` when it has no such table. */
  table(map: DeviceMap, context: CallContext): Promise<MapTable>;
  /**
   * Makes a map on the device, as large as that, or makes an interrupted one whole; answers it as it was read back.
   *
   * Throws `identity-mismatch` when a map of that name has another UUID, `unavailable` when the kernel makes none.
   */
  make(identity: MapIdentity, below: ProvenDevice, context: CallContext): Promise<DeviceMap>;
  /**
   * Puts the map onto the device, and lets I/O wait again; what waits goes on there. Answers the map as it was read
   * back. Throws `unavailable` when the kernel does not do it, or the map is larger by now; the map is then as it was.
   */
  reload(
    map: DeviceMap,
    below: ProvenDevice,
    sizeBytes: bigint,
    context: CallContext,
    options?: ReloadOptions,
  ): Promise<DeviceMap>;
  /** What is written waits from now on, until the map is reloaded. OK when it does already. */
  failPath(map: DeviceMap, context: CallContext): Promise<void>;
  /** What waits for a path fails now, and later I/O fails while there is none. OK when it is so already. */
  endQueueing(map: DeviceMap, context: CallContext): Promise<void>;
  /** Removes the map. OK when it is gone. Throws `in-use` while it is mounted or open. */
  remove(map: DeviceMap, context: CallContext): Promise<void>;
}
