import type { StoredFile } from "../model/inventory.ts";
import type { MutationOutcome } from "./store.ts";
import type { CallContext } from "./system.ts";

/** The disk whose file system is the share. */
export interface ShareDisk {
  readonly slot: string;
  /** Whether the router shares it over NFS. */
  readonly isShared: boolean;
  readonly freeBytes: bigint;
  /** "" where the router does not show it. */
  readonly filesystemUuid: string;
}

/** State of the share that every read returns, so that absence can be judged. */
export interface ShareView {
  /** Undefined while nothing is mounted there. */
  readonly share: ShareDisk | undefined;
  /** The images of file-backed disks that lie on it, of any owner. */
  readonly images: readonly string[];
  /** Where the router has mounted other disks below it. */
  readonly mountsBelow: readonly string[];
  /** How long the router is up, in milliseconds: disks come back late after a boot. 0 where that is not known. */
  readonly upMs: number;
}

/** A read of files and directories. */
export interface DirectoryView extends ShareView {
  readonly entries: readonly StoredFile[];
}

/** What of a directory's content a removal takes away. */
export type RemovalPart =
  /** The directory with everything in it, as far as the router removes one that is not empty. */
  | { readonly kind: "whole" }
  /** Everything in it that is no directory. */
  | { readonly kind: "files" }
  /** The empty directories in it that are so many levels down, 1 for those right in it. */
  | { readonly kind: "level"; readonly depth: number };

/** A read of a directory that is being removed. */
export interface RemovalView extends ShareView {
  /** Whether it is still there. */
  readonly exists: boolean;
  /** How many files and directories are in it. */
  readonly count: number;
}

/**
 * The router as the controller of directories sees it. Paths have one leading slash; the share is that of their first
 * segment.
 *
 * Every method throws {@linkcode VolumeError} as those of `VolumeStore`. A method that changes something reads back
 * before it returns; neither success nor failure is assumed.
 */
export interface DirectoryStore {
  /**
   * Reads which of these paths exist; all are of one share. One command.
   *
   * @param deleted a path whose deleted directories are read too, see `deletedPath()`
   */
  find(paths: readonly string[], context: CallContext, deleted?: string): Promise<DirectoryView>;
  /** Reads the directories below a folder, at any depth, whose last name has a part of `.<mark>`. One command. */
  list(folder: string, mark: string, context: CallContext): Promise<DirectoryView>;
  /** Makes a directory where nothing is, on its mounted share, and reads it back. One command. */
  make(path: string, context: CallContext): Promise<MutationOutcome<DirectoryView>>;
  /**
   * Renames a directory to a free path, and reads both back. One command, which is sent on the connection of the call's last
   * read only: what that showed of other disks must still be all.
   */
  rename(from: string, to: string, context: CallContext): Promise<MutationOutcome<DirectoryView>>;
  /** Reads how much is left of a directory. One command. */
  left(path: string, context: CallContext): Promise<RemovalView>;
  /** How many directories are at least so many levels down in a directory, 1 for those right in it. One command. */
  directoriesBelow(path: string, depth: number, context: CallContext): Promise<number>;
  /**
   * Removes a part of a directory, unless another disk is mounted in it, and reads back what is left. One command,
   * which can take minutes, and is sent like that of `rename()`.
   */
  remove(path: string, part: RemovalPart, context: CallContext): Promise<MutationOutcome<RemovalView>>;
  /** Resolves when the router can be asked right now, and is fit for this driver. */
  probe(context: CallContext): Promise<void>;
}
