import type { NfsAddress } from "../model/directory/handle.ts";
import type { MountEntry } from "./node_ports.ts";
import type { CallContext } from "./system.ts";

/** A folder of an NFS server as a node mounts it. */
export interface NfsShare {
  /** The server's addresses, in the order in which they are tried. */
  readonly addresses: readonly NfsAddress[];
  /** The path that the server exports. */
  readonly export: string;
  /** All options of the mount, sorted. */
  readonly options: readonly string[];
}

/**
 * How a mount ended: `unmounted`, or `detached` where the server did not answer. A detached mount is gone from the
 * mount table. The kernel writes what it still holds once the server is back, and loses it if the node reboots before.
 */
export type UnmountOutcome = "unmounted" | "detached";

/** Whether all that was written is on the server; `silent` where it does not answer. */
export type FlushOutcome = "written" | "failed" | "silent";

/** How a folder looks to the one who wants to know whether it is new. */
export interface FolderState {
  /** Whether nothing is in it. */
  readonly isEmpty: boolean;
  /** Whether neither its owner, its permissions nor its times were changed since its content changed last. */
  readonly isUntouched: boolean;
  /** When its content changed last, in whole milliseconds since the Unix epoch. */
  readonly modifiedMs: number;
}

/**
 * This node's NFS mounts. Every method ends in time, also when a server is dead. Targets are mount points as the kernel
 * writes them.
 */
export interface NfsMounts {
  /** Why this node can mount no share right now; undefined when nothing prevents it. */
  obstacle(context: CallContext): Promise<string | undefined>;
  /** The whole mount table, in the kernel's order. */
  table(): Promise<readonly MountEntry[]>;
  /**
   * Mounts a share from the first address that lets it.
   *
   * @throws {VolumeError} unavailable with every address's reason when none does
   */
  mount(share: NfsShare, target: string, context: CallContext): Promise<void>;
  /** Binds a folder onto another. The caller checks in the table what it has bound. */
  bind(source: string, target: string, context: CallContext): Promise<void>;
  /** Makes a bind read-only. */
  makeReadOnly(target: string, context: CallContext): Promise<void>;
  /**
   * Makes the kernel write to the server all that it still holds for the share of a path.
   *
   * @throws {VolumeError} unavailable when that takes long, and the server answers
   */
  flush(path: string, context: CallContext): Promise<FlushOutcome>;
  /**
   * Unmounts everything at a target, and returns when the table shows nothing there.
   *
   * @throws {VolumeError} in-use when it is busy and its server answers
   */
  unmount(target: string, context: CallContext): Promise<UnmountOutcome>;
  /** The path with all links followed; undefined when nothing is there. Throws `unavailable` or `deadline`. */
  realPath(path: string, context: CallContext): Promise<string | undefined>;
  /** Reads a folder of a share whose server has just answered. Throws `precondition` when the server refuses. */
  readFolder(path: string, context: CallContext): Promise<FolderState>;
  /** Sets the time of a folder's last change of content, in milliseconds since the Unix epoch. */
  setModified(path: string, modifiedMs: number): Promise<void>;
  /** Changes owner, group and permissions, as far as they are given. Throws `precondition` when the server refuses. */
  setOwner(
    path: string,
    owner: { readonly uid?: number | undefined; readonly gid?: number | undefined },
  ): Promise<void>;
  /** Changes the permissions. Throws `precondition` when the server refuses. */
  setMode(path: string, mode: number): Promise<void>;
}
