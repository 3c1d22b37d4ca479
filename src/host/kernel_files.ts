/** What a path leads to, with links followed. */
export interface NodeInfo {
  readonly kind: "directory" | "file" | "block" | "other";
  /** For a device its number, `major:minor`. */
  readonly deviceNumber?: string;
  /** The number of the device of its file system, `major:minor`. */
  readonly filesystemNumber?: string;
}

/** A block device that is kept open. */
export interface HeldDevice {
  /** The number of the opened device, `major:minor`; undefined when it is no block device. */
  readonly deviceNumber: string | undefined;
  /** The path under which other processes can open it, for as long as this one keeps it open. */
  readonly path: string;
  /** Closes it, which may wait for a dead device. A second call does nothing. */
  release(): Promise<void>;
}

/** A file in memory, which ends with this process. */
export interface MemoryFile {
  /** The path under which other processes can read and write it, for as long as this one keeps it. */
  readonly path: string;
  /** The beginning of its content now. */
  read(length: number): Uint8Array;
  /** Gives it up. A second call does nothing. */
  release(): void;
}

/**
 * /proc, /sys and /dev, which the runtime's own functions must not touch under scoped permissions. Paths of these
 * folders are answered from memory and do not hang; no other path may be used here.
 *
 * Every reading method returns undefined when nothing is there, and throws {@linkcode VolumeError} `unavailable` when
 * that is unknown.
 */
export interface KernelFiles {
  /** A small file as text, without its last line break. */
  readText(path: string): string | undefined;
  /** The target of a symbolic link. */
  readLink(path: string): string | undefined;
  /** The names in a folder, in no order, without `.` and `..`. */
  list(path: string): readonly string[] | undefined;
  /** What is at the path. Asks no server and no device. */
  info(path: string): NodeInfo | undefined;
  /**
   * Opens a block device exclusively and closes it again. False when that fails for any reason, or has not ended when
   * the signal is aborted.
   */
  canOpenExclusively(path: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Opens a block device for reading and keeps it open, unclaimed. Undefined when that fails for any reason, or has not
   * ended when the signal is aborted.
   */
  hold(path: string, signal: AbortSignal): Promise<HeldDevice | undefined>;
  /**
   * Reads parts of a block device past all caches, without claiming it; offsets and lengths in bytes, multiples of
   * 4096.
   *
   * @throws {VolumeError} unavailable when a read fails, returns fewer bytes than requested, or has not ended when the
   *   signal is aborted
   */
  readDirect(path: string, parts: readonly DevicePart[], signal: AbortSignal): Promise<readonly Uint8Array[]>;
  /**
   * Makes the kernel write its cached data to a block device, and the device store its own cache, without claiming it.
   * False when that fails for any reason, or an earlier write of that data failed.
   *
   * @throws {VolumeError} unavailable when it has not ended when the signal is aborted, or an earlier one still waits
   *   for the device
   */
  flush(path: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Makes a file in memory of that size; zeros follow the content.
   *
   * @throws {VolumeError} unavailable when there is no memory
   */
  memoryFile(content: Uint8Array, sizeBytes: number): MemoryFile;
}

/** Part of a device, in bytes. */
export interface DevicePart {
  readonly offset: bigint;
  readonly length: number;
}
