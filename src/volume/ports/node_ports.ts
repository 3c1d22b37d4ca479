/**
 * What the node's services need from the machine, as interfaces.
 *
 * @module
 */
import type { VolumeError } from "../errors.ts";
import type { FilesystemType } from "../model/capabilities.ts";
import type { DeviceUser } from "../model/host/device_user.ts";
import type { ConnectionSettings } from "../model/staging/state.ts";
import type { HostIdentity } from "../model/host/identity.ts";
import type { CallContext } from "./system.ts";

/** A subsystem to connect, from the publish context of ControllerPublishVolume. */
export interface Target extends ConnectionSettings {
  /** Subsystem NQN of the epoch. */
  readonly nqn: string;
  /** One is enough to use the volume; the others are added when it is in use. Never empty. */
  readonly addresses: readonly string[];
  readonly port: number;
}

/** One path to a subsystem: a controller of the kernel's initiator. */
export interface Connection {
  readonly nqn: string;
  /** The kernel's name of it. It says nothing about the names of devices. */
  readonly name: string;
  readonly state: "live" | "connecting" | "deleting" | "other";
  /** The state in the kernel's own word. */
  readonly stateName: string;
  readonly address: string;
  readonly port: number;
  /** The identity under which the target sees this node; "" where the connector has none. */
  readonly hostNqn: string;
  readonly hostId: string;
}

/** An address of a target that has no path. */
export interface MissingPath {
  readonly address: string;
  /** Why it has none; undefined where that was not tried. */
  readonly reason: string | undefined;
}

/** Where a target answers which subsystems it offers. */
export interface TargetAddress {
  readonly address: string;
  readonly port: number;
}

/** A block device as found from a subsystem NQN. Finding is not proving: see {@linkcode ProvenDevice}. */
export interface FoundDevice {
  /** Path under /dev. */
  readonly path: string;
  /** Device number, `major:minor`. */
  readonly deviceNumber: string;
  readonly sizeBytes: bigint;
  readonly nqn: string;
  readonly nsid: number;
  /** NGUID or UUID in lower case hex, "" where the target gives none. */
  readonly uniqueId: string;
}

declare const proven: unique symbol;

/**
 * A device whose identity was just compared with the expected one. Only `node/connections/device.ts` makes one, and
 * without one nothing can be formatted, checked, mounted, bound or resized.
 */
export type ProvenDevice = FoundDevice & { readonly [proven]: true };

/**
 * How a node reaches a volume. `nvme-tcp` is the kernel's initiator; `loop` attaches the simulator's backing file.
 * This is the only place that knows which.
 */
export interface Connector {
  readonly name: string;
  /**
   * Whether the kernel keeps a device, and {@linkcode Connector.disconnect} throws `in-use`, while a process has it
   * open. If it does not, a process that cannot be inspected has to count as one that has it open.
   */
  readonly sparesOpenDevices: boolean;
  /**
   * The identity under which connections are made and {@linkcode Connector.offered} asks; absent where the connector
   * has none.
   */
  readonly host?: HostIdentity;
  /**
   * Why this node can connect nothing right now, such as a kernel without the transport, for people; undefined when
   * nothing prevents it. Reads only the kernel.
   */
  obstacle(context: CallContext): Promise<string | undefined>;
  /**
   * Connects, or verifies an existing connection. Idempotent. Returns as soon as one path is live, with the addresses that
   * have none, for {@linkcode Connector.addPaths}. Throws `unavailable` when the target refuses, or does not answer.
   */
  connect(target: Target, context: CallContext): Promise<readonly MissingPath[]>;
  /**
   * Adds the paths that a connected subsystem lacks, where its target answers and offers it; returns those that are still
   * missing. It yields to every connect, and makes no connection where there is none.
   */
  addPaths(target: Target, context: CallContext): Promise<readonly MissingPath[]>;
  /** Finds the device of a subsystem by walking from its NQN, never from a path. Undefined while there is none. */
  find(nqn: string, context: CallContext): Promise<FoundDevice | undefined>;
  /** Makes a connected device notice a changed size. */
  rescan(nqn: string, context: CallContext): Promise<void>;
  /** Flushes and disconnects; returns only when the connection is gone from the kernel. OK when it was not there. */
  disconnect(nqn: string, context: CallContext): Promise<void>;
  /**
   * Cuts off a subsystem that is fenced, even while its device is open or mounted. Requests that wait for it fail at
   * once. Unwritten data is lost, which the fence intends. Nothing is flushed. OK when it was not there.
   */
  forceDisconnect(nqn: string, context: CallContext): Promise<void>;
  /** The paths to a subsystem, in any state; empty when it is not connected. */
  connections(nqn: string, context: CallContext): Promise<readonly Connection[]>;
  /**
   * The paths to every connected subsystem of this driver's prefix, in any state, by NQN. Each path is read once, however
   * many there are.
   */
  allConnections(context: CallContext): Promise<ReadonlyMap<string, readonly Connection[]>>;
  /**
   * The devices of the connected subsystems of this driver's prefix, by NQN, each as {@linkcode Connector.find} finds it. One
   * that is doubtful is left out.
   */
  allDevices(context: CallContext): Promise<ReadonlyMap<string, FoundDevice>>;
  /**
   * NQNs of the subsystems that the target offers to this node right now, read with the identity under which
   * connections are made. Throws `unavailable` unless it answered completely.
   */
  offered(at: TargetAddress, context: CallContext): Promise<readonly string[]>;
  /** NQNs of this driver's prefix that are connected now, in any state. */
  connected(context: CallContext): Promise<readonly string[]>;
  /**
   * The connected NQNs of this driver's prefix that have a live path. Each path is read once, however many there are.
   */
  live(context: CallContext): Promise<ReadonlySet<string>>;
}

/** One line of /proc/self/mountinfo. */
export interface MountEntry {
  readonly mountId: number;
  readonly parentId: number;
  /** Device number of the mounted file system, `major:minor`. */
  readonly deviceNumber: string;
  /** Root of the mount within its file system; for a bind-mounted device node its path within devtmpfs. */
  readonly root: string;
  readonly mountPoint: string;
  readonly mountOptions: readonly string[];
  readonly filesystem: string;
  readonly source: string;
  readonly superOptions: readonly string[];
}

/** What a path is, without following a link and without hanging. */
export interface PathInfo {
  readonly kind: "directory" | "file" | "block" | "link" | "other";
  /** For a block device its number, `major:minor`. */
  readonly deviceNumber?: string;
}

/** Options of a mount. */
export interface MountOptions {
  readonly readOnly: boolean;
  /**
   * Whether a read-only mount replays the log first, which writes to the device.
   *
   * @default {false}
   */
  readonly replay?: boolean;
  /** Options of the file system, from the volume capability. */
  readonly flags: readonly string[];
}

/**
 * This node's mount table and its operations.
 *
 * Targets are mount points as the kernel writes them (see {@linkcode Paths.mountPoint}). A mount or bind reads the
 * table afterwards, and throws `identity-mismatch` when it does not show the proven device there.
 */
export interface Mounts {
  /** The whole table, in the kernel's order. */
  table(): Promise<readonly MountEntry[]>;
  /** Not killed when the context ends. */
  mountDevice(
    device: ProvenDevice,
    target: string,
    filesystem: FilesystemType,
    options: MountOptions,
    context: CallContext,
  ): Promise<void>;
  /**
   * Binds the folder `source`, on which the device is mounted, onto another; a folder that is bound already is only
   * made read-only where that is missing. Exactly one mount exists afterwards.
   */
  bindFolder(
    device: ProvenDevice,
    source: string,
    target: string,
    options: { readonly readOnly: boolean },
    context: CallContext,
  ): Promise<void>;
  /** Binds a device node onto a file; otherwise like {@linkcode Mounts.bindFolder}. */
  bindDevice(
    device: ProvenDevice,
    target: string,
    options: { readonly readOnly: boolean },
    context: CallContext,
  ): Promise<void>;
  /**
   * Thaws the file system that is mounted there, and returns when the kernel says that it is not frozen; whether it was.
   * Throws `unavailable` when it cannot be thawed or asked, `deadline` when it does not answer within seconds.
   */
  thaw(mountPoint: string, context: CallContext): Promise<boolean>;
  /**
   * Unmounts everything at `target`, and returns when the table shows nothing there. OK when there was nothing. Throws
   * `in-use` as {@linkcode Mounts.whoKeeps}.
   */
  unmount(target: string, context: CallContext): Promise<void>;
  /** The error of an unmount that the kernel refuses: names the processes that use what is mounted, or says what was searched. */
  whoKeeps(target: string, context: CallContext): Promise<VolumeError>;
}

/** How a device is probed. */
export interface ProbeOptions {
  /**
   * Whether only its ends tell that it is blank: what was never written to an encrypted device reads as noise. @default
   * {false}
   */
  readonly onlyEnds?: boolean;
}

/** The signature of what is on a device, with its UUID and label where it has them. */
export interface FoundSignature {
  readonly type: string;
  readonly uuid?: string;
  readonly label?: string;
}

/** The type of a device on which blkid finds several signatures, none of them an array's member's. */
export const contradictorySignatures = "several contradictory signatures";

/** What a device itself and blkid show. */
export interface DeviceProbe {
  /**
   * True only when head and tail, and the places where file systems keep copies of their superblocks, were read without
   * error and every byte was zero.
   */
  readonly blank: boolean;
  /** blkid's result: a type, nothing, or that it could not tell. */
  readonly signature:
    /** Where it is another one, also the ext4 or xfs that blkid finds when it looks for nothing else. */
    | FoundSignature & { readonly state: "found"; readonly filesystem?: FoundSignature }
    | { readonly state: "none" }
    | { readonly state: "unknown"; readonly reason: string };
}

/** Whether a file system shows all synced data without a replay of its log. */
export type LogState = { readonly state: "clean" | "dirty" } | {
  readonly state: "unknown";
  readonly reason: string;
};

/** Options for making a file system. */
export interface FormatOptions {
  readonly label?: string;
  /** Further arguments for mkfs. */
  readonly extra: readonly string[];
  /**
   * Whether inode tables and journal may be initialised later: only where nothing on the device can be the remains of a
   * file system. What a new key decrypts is noise.
   */
  readonly lazy: boolean;
}

/** The file system tools. */
export interface Filesystems {
  /** Reads parts of the device and runs blkid. Throws `unavailable` when a part cannot be read completely. */
  probe(device: ProvenDevice, context: CallContext, options?: ProbeOptions): Promise<DeviceProbe>;
  /** Whether the file system whose signature was found was made completely. Changes nothing. */
  isComplete(device: ProvenDevice, filesystem: FilesystemType, context: CallContext): Promise<boolean>;
  /**
   * Whether the log of an unmounted file system has to be replayed; unknown where the device holds another type.
   * Changes nothing. Throws `unavailable` when the device cannot be read.
   */
  logState(device: ProvenDevice, filesystem: FilesystemType, context: CallContext): Promise<LogState>;
  /** Zeroes the ends of the device, see {@linkcode Filesystems.probe}. Not killed when the context ends. */
  eraseEnds(device: ProvenDevice, context: CallContext): Promise<void>;
  /** Makes a file system. Not killed when the context ends. */
  format(
    device: ProvenDevice,
    filesystem: FilesystemType,
    options: FormatOptions,
    context: CallContext,
  ): Promise<void>;
  /**
   * Checks before a first mount; repairs only what is safe.
   *
   * @throws {VolumeError} precondition with the command a person can run; in-use when the device is in use; unavailable
   *   when the check did not end
   */
  check(device: ProvenDevice, filesystem: FilesystemType, context: CallContext): Promise<void>;
  /** Grows a mounted file system to its device. */
  grow(
    device: ProvenDevice,
    filesystem: FilesystemType,
    mountPoint: string,
    context: CallContext,
  ): Promise<void>;
  /** Size and use of a mounted file system. */
  stats(mountPoint: string, context: CallContext): Promise<FilesystemStats>;
  /**
   * Reports the space that the mounted file system does not use to the device (FITRIM). Returns how many bytes the file
   * system reported; undefined when the device takes no discards. Killed when the context ends, which harms nothing.
   * Throws `unavailable` when it fails.
   */
  trim(device: ProvenDevice, mountPoint: string, context: CallContext): Promise<bigint | undefined>;
}

/** Size and use of a mounted file system. */
export interface FilesystemStats {
  readonly totalBytes: bigint;
  readonly availableBytes: bigint;
  readonly usedBytes: bigint;
  readonly totalInodes: bigint;
  readonly freeInodes: bigint;
  readonly usedInodes: bigint;
}

/** A block device by number and path. */
export type DeviceNode = Pick<FoundDevice, "deviceNumber" | "path">;

/** What only a search through the mount namespaces of all processes finds. */
export interface HiddenUsers {
  /** Mounts in other mount namespaces, files of a file system that no mount table shows, or such a file system. */
  readonly users: readonly DeviceUser[];
  /** What was searched, for people. */
  readonly searched: string;
}

/** Operations on block devices. */
export interface BlockDevices {
  /** Sets the kernel's read-only flag of the device (BLKROSET). */
  setReadOnly(device: ProvenDevice, readOnly: boolean, context: CallContext): Promise<void>;
  /**
   * Makes the kernel read the device again: it keeps what it has read in memory for as long as anything, such as a map,
   * has the device open. Throws `unavailable` when that fails.
   */
  forgetReads(device: ProvenDevice, context: CallContext): Promise<void>;
  /** Whether the kernel refuses writes to the device; undefined where it does not show that. Starts no process. */
  isReadOnly(device: ProvenDevice): Promise<boolean | undefined>;
  /** The partitions of the device that the kernel has found. Starts no process. */
  partitions(device: DeviceNode): Promise<readonly DeviceNode[]>;
  /**
   * What this node's kernel has made on top of one of the devices: device mapper (LVM, multipath), md and the like; and the
   * devices to which it swaps. Starts no process.
   */
  layers(nodes: readonly DeviceNode[]): Promise<readonly DeviceUser[]>;
  /**
   * The processes of the host with a descriptor on one of the devices, and loop devices on top. Empty when they are provably
   * not open. A mount is not seen here.
   */
  openBy(nodes: readonly DeviceNode[], context: CallContext): Promise<readonly DeviceUser[]>;
  /**
   * Searches for the users of the devices that this process's mount table does not show. It reads every process of the host:
   * only for a device whose user is not known otherwise. Opens no device.
   */
  hiddenUsers(nodes: readonly DeviceNode[], context: CallContext): Promise<HiddenUsers>;
  /**
   * Keeps the device open, so that the kernel gives neither its name nor its number to another device while tools go by
   * them. Returns a function that closes it, which never fails and is quick.
   *
   * Throws `unavailable` when it does not open, `identity-mismatch` when another device has its path.
   */
  hold(device: DeviceNode, context: CallContext): Promise<() => Promise<void>>;
  /**
   * Whether the kernel has an ext4 or xfs of the device, mounted or not: one that is frozen, or was unmounted while it was
   * used, lives without a mount. Starts no process.
   */
  hasFilesystem(device: DeviceNode): Promise<boolean>;
  /**
   * How many errors the kernel has found in the mounted ext4 of the device since its last check; undefined where it counts
   * none, as with xfs. Starts no process.
   */
  filesystemErrors(device: DeviceNode): Promise<number | undefined>;
  /**
   * Whether the device answers a read with an error; undefined when it does not answer within seconds, or that is not known.
   * It reads the first block, past all caches.
   */
  refusesReads(device: DeviceNode, context: CallContext): Promise<boolean | undefined>;
  /** Whether the device can be opened exclusively: neither mounted nor claimed, in any mount namespace. */
  isUnclaimed(device: DeviceNode, context: CallContext): Promise<boolean>;
}

/** The machine that a node service runs on. */
export interface Machine {
  /** Whether it is the one of that `machineHash()`; undefined when that is not known. */
  is(hash: string): boolean | undefined;
}

/** File operations on the kubelet's folders that cannot hang the process. */
export interface Paths {
  /** What is at `path`, not following links; undefined when nothing is there. */
  info(path: string, context: CallContext): Promise<PathInfo | undefined>;
  /**
   * Like {@linkcode Paths.info}, for a path that {@linkcode Paths.mountPoint} has resolved and where nothing is
   * mounted: it is on the node's own file system, and needs no child process.
   */
  ownInfo(path: string, context: CallContext): Promise<PathInfo | undefined>;
  /**
   * Returns `path` as the kernel writes it for a mount point: links in its parents resolved, its last name unchanged.
   */
  mountPoint(path: string): Promise<string>;
  /** Returns what `path` leads to, with links followed; undefined when nothing is there. */
  realPath(path: string): Promise<string | undefined>;
  /** Makes a folder, and its parents. OK when it exists. */
  makeFolder(path: string, mode: number): Promise<void>;
  /** Makes an empty file. OK when it exists. */
  makeFile(path: string, mode: number): Promise<void>;
  /** Sets the mode of a folder, and syncs it. */
  setMode(path: string, mode: number): Promise<void>;
  /**
   * Writes and syncs a small file in place of an older one, atomically.
   *
   * @throws {VolumeError} unavailable when the system refuses, for example on a full disk
   */
  writeFile(path: string, text: string, mode: number): Promise<void>;
  /** Undefined when there is no such file. */
  readFile(path: string): Promise<string | undefined>;
  /** Removes an empty folder. OK when there is none. Never recursive. */
  removeEmptyFolder(path: string): Promise<void>;
  /** Removes an empty file. OK when there is none; a file with content stays, and is an error. */
  removeEmptyFile(path: string): Promise<void>;
  /** Removes a file of this driver's own, and the remains of an interrupted write of it. OK when there is neither. */
  removeFile(path: string): Promise<void>;
  /** Names in a folder; empty when there is none. */
  list(path: string): Promise<readonly string[]>;
}
