/**
 * What the rules and services need from the world, as interfaces: the router, the node's devices and file systems,
 * time and chance. Adapters implement them; tests and the deterministic simulation hand in others.
 *
 * Nothing in here does anything.
 *
 * @module
 */

/** Time, passed in so that a simulation can own it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic milliseconds, for durations. */
  monotonicMs(): number;
  /**
   * Resolves after `ms` milliseconds; rejects with `signal.reason` as soon as `signal` is aborted.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `ms` milliseconds unless cancelled by the returned function. */
  timer(ms: number, callback: () => void): () => void;
}

/** Chance, passed in so that a simulation can seed it. */
export interface Random {
  /** `count` bytes. */
  bytes(count: number): Uint8Array;
  /** A float in [0, 1). */
  fraction(): number;
}

/** What one call carries down to the last command it sends. */
export interface CallContext {
  /** Names this call in every log line. */
  readonly requestId: string;
  /** Aborted when the client cancels or its deadline passes; the reason is a {@linkcode VolumeError}. */
  readonly signal: AbortSignal;
  /** When the client stops waiting: `Clock.now()` milliseconds, or Infinity. */
  readonly deadlineMs: number;
}

// ---------------------------------------------------------------------------------------------------------------
// The router

/** A file-backed disk as the router reports it. Its `comment` carries the record (see `record.ts`), or something else. */
export interface StoredVolume {
  /** The volume id: the router's slot. */
  readonly id: string;
  /** The backing file, with one leading slash. */
  readonly imagePath: string;
  readonly sizeBytes: bigint;
  readonly exported: boolean;
  /** Subsystem NQN of the export; "" when none was ever set. */
  readonly exportNqn: string;
  /** TCP port of the export; 0 when none was ever set. */
  readonly exportPort: number;
  /** The whole comment, as it stands. */
  readonly comment: string;
}

/** A disk that this driver did not make and must not touch: hardware, raid, a disk without a backing file. */
export interface ForeignDisk {
  readonly id: string;
  readonly kind: string;
}

/** A mounted file system of the router on which images lie. */
export interface Pool {
  /** First segment of the paths on it, without slashes. */
  readonly mountPoint: string;
  readonly filesystem: string;
  readonly sizeBytes: bigint;
  readonly freeBytes: bigint;
}

/** A file on the router. */
export interface StoredFile {
  /** With one leading slash. */
  readonly path: string;
  readonly sizeBytes: bigint;
  readonly directory: boolean;
}

/** What every look at the router tells beside its subject, so that absence can be judged. */
export interface RouterState {
  /** The mounted pools. */
  readonly pools: readonly Pool[];
  /** Milliseconds since the router booted. */
  readonly upMs: number;
}

/** One look at one volume. */
export interface VolumeView extends RouterState {
  /** The disk in that slot, when it is file-backed. */
  readonly volume: StoredVolume | undefined;
  /** The disk in that slot when it is anything else. */
  readonly foreign: ForeignDisk | undefined;
  /** Other disks that use one of the image paths asked about. */
  readonly sharers: readonly StoredVolume[];
  /** Those of the image paths asked about that exist as files. */
  readonly files: readonly StoredFile[];
}

/** One look at everything. */
export interface Inventory extends RouterState {
  /** Every file-backed disk, of whatever owner, ordered by id. */
  readonly volumes: readonly StoredVolume[];
}

/** An inventory together with the files of the paths asked about: what a create decides on. */
export interface CreateView extends Inventory {
  /** The disk in the wanted slot when it is not file-backed. */
  readonly foreign: ForeignDisk | undefined;
  readonly files: readonly StoredFile[];
}

/** A disk to be added. It is never exported at first. */
export interface NewVolume {
  readonly id: string;
  readonly imagePath: string;
  readonly sizeBytes: bigint;
  readonly comment: string;
  /** The folder of the image, to be made first because the view showed that it is missing. */
  readonly makeFolder?: string;
}

/** What a change of a disk sets; what is left out stays. */
export interface VolumeChange {
  readonly comment?: string;
  readonly sizeBytes?: bigint;
  /** `false` withdraws the export. */
  readonly export?: { readonly nqn: string; readonly port: number } | false;
}

/**
 * How a mutation ended, after reading back. Neither success nor failure is assumed: whoever asked compares
 * `after` with what it wanted.
 */
export interface MutationOutcome<View> {
  /** What was read after the command. */
  readonly after: View;
  /**
   * What the router said instead of doing it, if it said anything; its words are for people, not for decisions.
   * Undefined when the command ran through, or when its end is unknown.
   */
  readonly refusal: string | undefined;
}

/**
 * The router as the controller sees it: the one truth about volumes.
 *
 * Every method throws {@linkcode VolumeError} `unavailable` when the router could not be asked or its answer could not
 * be read whole, `deadline` or `cancelled` when the context ends first. A method that changes something settles an
 * ambiguous end by reading before it returns.
 */
export interface VolumeStore {
  /** Looks at one volume and at the files named. One command. */
  view(id: string, imagePaths: readonly string[], context: CallContext): Promise<VolumeView>;
  /** Looks at everything, and at the files named. One command, unless the router's output limit forces more. */
  createView(id: string, imagePaths: readonly string[], context: CallContext): Promise<CreateView>;
  /** Lists every file-backed disk. One command, unless the router's output limit forces more. */
  inventory(context: CallContext): Promise<Inventory>;
  /** Adds a disk (after `makeFolder`, where given), never exported, and reads every disk back. One command. */
  add(volume: NewVolume, context: CallContext): Promise<MutationOutcome<Inventory>>;
  /**
   * Changes a disk if its comment is still exactly `expectedComment`, and reads it back. One command.
   * A withdrawn export and a new one given in the same change are one command too: never off for longer than it must.
   */
  change(
    id: string,
    expectedComment: string,
    change: VolumeChange,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>>;
  /**
   * Removes a disk if its comment is still exactly `expectedComment`, then the backing file, which goes only when no
   * disk uses it any more. One command. With `expectedComment` undefined only the file is removed.
   */
  remove(
    id: string,
    expectedComment: string | undefined,
    imagePath: string,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>>;
  /** Whether the router can be asked right now, and is fit for this driver. */
  probe(context: CallContext): Promise<void>;
}

// ---------------------------------------------------------------------------------------------------------------
// The cluster

/** Which nodes exist. */
export interface NodeDirectory {
  /** Whether a node of that id is known to the cluster. */
  isKnown(nodeId: string, context: CallContext): Promise<boolean>;
}

// ---------------------------------------------------------------------------------------------------------------
// The node

/** A subsystem to be reached: what ControllerPublish put into the publish context. */
export interface Target {
  /** Subsystem NQN of the epoch. */
  readonly nqn: string;
  readonly address: string;
  readonly port: number;
  readonly sizeBytes: bigint;
  /** Seconds; undefined leaves the connector's default. */
  readonly ctrlLossTmo?: number;
  readonly reconnectDelay?: number;
  readonly keepAliveTmo?: number;
  readonly nrIoQueues?: number;
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
 * A device whose identity was compared with what was asked for, just now. Only `node/identity.ts` makes one, and
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
   * Whether the kernel keeps a device, and {@linkcode Connector.disconnect} throws `in-use`, while anybody has it open.
   * Where it does not, whoever cannot be looked into has to be taken for one who has.
   */
  readonly sparesOpenDevices: boolean;
  /** Connects, or verifies the connection that is there. Idempotent. Throws `unavailable` when the target refuses. */
  connect(target: Target, context: CallContext): Promise<void>;
  /** Finds the device of a subsystem by walking from its NQN, never from a path. Undefined while there is none. */
  find(nqn: string, context: CallContext): Promise<FoundDevice | undefined>;
  /** Makes a connected device notice a changed size. */
  rescan(nqn: string, context: CallContext): Promise<void>;
  /** Flushes and disconnects; returns only when the connection is gone from the kernel. OK when it was not there. */
  disconnect(nqn: string, context: CallContext): Promise<void>;
  /** NQNs of this driver's prefix that are connected now, in any state. */
  connected(context: CallContext): Promise<readonly string[]>;
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

/** What can be known about what a path is, without following a link and without hanging. */
export interface PathInfo {
  readonly kind: "directory" | "file" | "block" | "link" | "other";
  /** For a block device its number, `major:minor`. */
  readonly deviceNumber?: string;
}

/** Options of a mount. */
export interface MountOptions {
  readonly readOnly: boolean;
  /** Options of the file system, as the volume capability gave them. */
  readonly flags: readonly string[];
}

/**
 * The mount table of this node and what may be done to it.
 *
 * Targets are mount points as the kernel writes them (see {@linkcode Paths.mountPoint}). What mounts or binds looks
 * at the table afterwards, and throws `identity-mismatch` when it does not show the proven device there.
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
   * Binds the folder `source`, on which the device is mounted, onto another; one that is bound already is only made
   * read-only where that is missing. Exactly one mount is there afterwards.
   */
  bindFolder(
    device: ProvenDevice,
    source: string,
    target: string,
    options: { readonly readOnly: boolean },
    context: CallContext,
  ): Promise<void>;
  /** Binds a device node onto a file; otherwise as {@linkcode Mounts.bindFolder}. */
  bindDevice(
    device: ProvenDevice,
    target: string,
    options: { readonly readOnly: boolean },
    context: CallContext,
  ): Promise<void>;
  /** Unmounts everything at `target`, and returns when the table shows nothing there. OK when there was nothing. */
  unmount(target: string, context: CallContext): Promise<void>;
}

/** File systems this driver makes. */
export type FilesystemType = "ext4" | "xfs";

/** What the ends of a device and blkid say. */
export interface DeviceProbe {
  /** True only when head and tail were read without error and every byte was zero. */
  readonly blank: boolean;
  /** What blkid found: a type, nothing, or that it could not say. */
  readonly signature: { readonly state: "found"; readonly type: string } | { readonly state: "none" } | {
    readonly state: "unknown";
    readonly reason: string;
  };
}

/** How a file system is made. */
export interface FormatOptions {
  readonly label?: string;
  /** Further words of the tool's command line. */
  readonly extra: readonly string[];
  /** Whether inode tables and journal may be initialised later: only where all of the device is known to be zero. */
  readonly lazy: boolean;
}

/** The file system tools. */
export interface Filesystems {
  /** Reads both ends and asks for signatures. Throws `unavailable` when an end cannot be read whole. */
  probe(device: ProvenDevice, context: CallContext): Promise<DeviceProbe>;
  /** Whether the file system whose signature is there was made to the end. Changes nothing. */
  isComplete(device: ProvenDevice, filesystem: FilesystemType, context: CallContext): Promise<boolean>;
  /** Zeroes what {@linkcode Filesystems.probe} reads. Not killed when the context ends. */
  eraseEnds(device: ProvenDevice, context: CallContext): Promise<void>;
  /** Makes a file system. Not killed when the context ends. */
  format(
    device: ProvenDevice,
    filesystem: FilesystemType,
    options: FormatOptions,
    context: CallContext,
  ): Promise<void>;
  /** Checks before a first mount; repairs only what is safe. Throws `precondition` with the command a person can run. */
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

/** Who has a device open. */
export interface DeviceHolder {
  /** False for one who cannot be looked into, and so may have it open or not. */
  readonly certain: boolean;
  /** For people. */
  readonly description: string;
}

/** What a node can ask of a block device. */
export interface BlockDevices {
  /** Sets the kernel's read-only flag of the device (BLKROSET). */
  setReadOnly(device: ProvenDevice, readOnly: boolean, context: CallContext): Promise<void>;
  /**
   * Who has the device open: a process of the host with a descriptor on it, or a loop device on top of it. Undefined
   * when provably nobody. A mount is not seen here.
   */
  holder(device: DeviceNode, context: CallContext): Promise<DeviceHolder | undefined>;
  /** Whether the device can be opened exclusively: neither mounted nor claimed, in any mount namespace. */
  isUnclaimed(device: DeviceNode, context: CallContext): Promise<boolean>;
}

/** The folders of the kubelet, asked in ways that cannot hang the process. */
export interface Paths {
  /** What is at `path`, not following links; undefined when nothing is there. */
  info(path: string, context: CallContext): Promise<PathInfo | undefined>;
  /** How the kernel writes `path` as a mount point: links in its parents resolved, its last name left as it is. */
  mountPoint(path: string): Promise<string>;
  /** What `path` leads to, links followed; undefined when nothing is there. */
  realPath(path: string): Promise<string | undefined>;
  /** Makes a folder, and its parents. OK when it is there. */
  makeFolder(path: string, mode: number): Promise<void>;
  /** Makes an empty file. OK when it is there. */
  makeFile(path: string, mode: number): Promise<void>;
  setMode(path: string, mode: number): Promise<void>;
  /** Writes and syncs a small file in place of an older one, atomically. */
  writeFile(path: string, text: string, mode: number): Promise<void>;
  /** Undefined when there is none. */
  readFile(path: string): Promise<string | undefined>;
  /** Removes an empty folder. OK when there is none. Never recursive. */
  removeEmptyFolder(path: string): Promise<void>;
  /** Removes an empty file. OK when there is none; a file with content is left, and an error. */
  removeEmptyFile(path: string): Promise<void>;
  /** Removes a file of this driver's own. OK when there is none. */
  removeFile(path: string): Promise<void>;
  /** Names in a folder; empty when there is none. */
  list(path: string): Promise<readonly string[]>;
}
