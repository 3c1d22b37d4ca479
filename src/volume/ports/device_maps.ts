import type { DeviceNode, ProvenDevice } from "./node_ports.ts";
import type { CallContext } from "./system.ts";

/** The name and the UUID of a volume's map. */
export interface MapIdentity {
  readonly name: string;
  /** Names the volume and its epoch. */
  readonly uuid: string;
}

/** A map as the kernel shows it: a device that keeps its number, whatever happens to the device below it. */
export interface DeviceMap extends MapIdentity, DeviceNode {
  /** 0 while it has no table. */
  readonly sizeBytes: bigint;
  /** Numbers of the devices below it: that of its active table, and that of a loaded one that is not active yet. */
  readonly below: readonly string[];
  /** Number of the one device on which it is active; undefined while it is suspended, and while that device is gone. */
  readonly on: string | undefined;
  readonly suspended: boolean;
  /** Requests that have begun and not ended. */
  readonly pending: number;
  /** Requests that have ended since the map was made. */
  readonly completed: number;
}

/** How a map treats I/O. */
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
   * Refuses, with `unavailable`, a map whose queueing was ended by this process, also while the reload runs: such a map
   * fails writes. @default {false}
   */
  readonly unlessEnded?: boolean;
}

/** Maps between a volume's device and its users, which let I/O wait while the device is gone. */
export interface DeviceMaps {
  /** Why this node can make no map, for people; undefined when it can. */
  obstacle(context: CallContext): Promise<string | undefined>;
  /** Finds the map of that name, of any UUID; undefined when there is none. Starts no process. */
  find(name: string): Promise<DeviceMap | undefined>;
  /** All maps of this driver, by their UUIDs, of any export. Starts no process. */
  list(): Promise<readonly DeviceMap[]>;
  /** How the map treats I/O right now. Throws `unavailable` when it has no such table. */
  table(map: DeviceMap, context: CallContext): Promise<MapTable>;
  /**
   * Makes a map of the device's size on the device, or completes an interrupted one; returns the map as read back.
   *
   * Throws `identity-mismatch` when a map of that name has another UUID, `unavailable` when the kernel makes none.
   */
  make(identity: MapIdentity, below: ProvenDevice, context: CallContext): Promise<DeviceMap>;
  /**
   * Puts the map onto the device, and lets I/O queue again; waiting I/O goes on there. Returns the map as read back.
   * Throws `unavailable` when the kernel does not do it, or the map has become larger; the map is then unchanged.
   */
  reload(
    map: DeviceMap,
    below: ProvenDevice,
    sizeBytes: bigint,
    context: CallContext,
    options?: ReloadOptions,
  ): Promise<DeviceMap>;
  /** Lets writes wait from now on, until the map is reloaded. OK when they do already. */
  failPath(map: DeviceMap, context: CallContext): Promise<void>;
  /** Fails all I/O that waits for a path now, and later I/O while there is none. OK when that is so already. */
  endQueueing(map: DeviceMap, context: CallContext): Promise<void>;
  /** Removes the map. OK when it is gone. Throws `in-use` while it is mounted or open. */
  remove(map: DeviceMap, context: CallContext): Promise<void>;
}
