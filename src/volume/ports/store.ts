import type {
  CreateView,
  FileView,
  ImageLocation,
  Inventory,
  Pool,
  RouterState,
  SourceQuery,
  SourceView,
  StoredVolume,
  SubvolumeRef,
  VolumeView,
  Wanted,
} from "../model/inventory.ts";
import type { NotSent } from "./not_sent.ts";
import type { Premise } from "./premise.ts";
import type { CallContext } from "./system.ts";

/** A subvolume to be made. */
export interface NewSubvolume extends SubvolumeRef {
  /** The subvolume to make it a snapshot of; undefined for an empty one. */
  readonly parent?: SubvolumeRef;
  readonly readOnly: boolean;
  /** Must hold when the subvolume is made: the caller's conclusions from the parent's disk must still be true then. */
  readonly guard?: DiskGuard;
}

/** A condition that the router itself checks within the command: the disk exists with exactly that comment. */
export interface DiskGuard {
  readonly id: string;
  readonly comment: string;
}

/** A disk as it was read last. */
export type KnownDisk = Pick<StoredVolume, "id" | "comment" | "imagePath" | "sizeBytes" | "exported">;

/** A folder to be made if it does not exist; on a Btrfs pool as a subvolume of that label. */
export interface NewFolder {
  readonly path: string;
  readonly label: string | undefined;
}

/** Paths of folders. */
export interface FolderChange {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** A disk to be added. It is not exported at first. It is not added if a disk is in its slot or on its image. */
export interface NewVolume {
  readonly id: string;
  readonly location: ImageLocation;
  /** Undefined when the image exists already, from `copied` or `subvolume`: it keeps its size. */
  readonly sizeBytes: bigint | undefined;
  readonly comment: string;
  /** The folder of the image or its subvolume, to be made first. */
  readonly makeFolder?: NewFolder;
  /** The image's subvolume, to be made first. */
  readonly subvolume?: NewSubvolume;
  /** A finished copy to be renamed to the image first, if the disk can then be added: both happen, or neither. */
  readonly copied?: { readonly path: string };
  /** Whether the image was made by something else, in any folder and of any name. */
  readonly imported?: boolean;
}

/** The NQN and the TCP port of an export. */
export interface VolumeExport {
  readonly nqn: string;
  readonly port: number;
}

/** The changes of a disk; fields that are left out stay. */
export interface VolumeChange {
  readonly comment?: string;
  readonly sizeBytes?: bigint;
  /** `false` withdraws the export. */
  readonly export?: VolumeExport | false;
  /** Stops the router from mounting a file system that it finds on the disk. */
  readonly neverMounted?: true;
  /**
   * Sets `sizeBytes` while the export is off, and turns it on unchanged: connected hosts have to reconnect. `export` is left out
   * then, and the router is stopped from mounting a file system. If the command is interrupted in between, the export stays off
   * with the earlier comment.
   */
  readonly bounce?: boolean;
}

/**
 * The result of a mutation, after reading back. Neither success nor failure is assumed: the caller compares `after`
 * with what it wanted.
 */
export interface MutationOutcome<View> {
  /** The state that was read after the command. */
  readonly after: View;
  /**
   * The router's message when it refused, for people and not for decisions. Undefined when the command completed, or
   * when its end is unknown.
   */
  readonly refusal: string | undefined;
  /**
   * Whether the command has ended for certain: its whole answer came. Where it is false the router may still carry the
   * command out later, also one that it refused: `action timed out` says no more than that nobody waits any longer.
   */
  readonly ended: boolean;
}

/** What is to be written, once. */
export type Write =
  /** `readsAll`: every disk is read back. */
  | { readonly add: NewVolume; readonly filePrefix?: string; readonly readsAll?: true }
  | { readonly id: string; readonly set: VolumeChange; readonly filePrefix?: string }
  /** The disk, and then the image if no disk uses it any more. Reads back what is left of the file-name prefix. */
  | { readonly id: string; readonly remove: ImageLocation; readonly filePrefix: string };

/** A volume as it was read back. */
export interface CommittedView extends VolumeView {
  /** Every disk, where that was asked for: then nothing else is shown but the volume's own. */
  readonly all?: readonly StoredVolume[];
}

/** What came of a write that the router may have got. */
export type Commit = MutationOutcome<CommittedView>;

/** The id of the volume that is written. */
export function idOfWrite(write: Write): string {
  return "add" in write ? write.add.id : write.id;
}

/** Conditions under which a disk is added or removed without a read before. */
export interface Unseen {
  /** The prefix of the names of all files of the volume. */
  readonly filePrefix: string;
  /** The least uptime of the router, in milliseconds. */
  readonly settleMs: number;
}

/**
 * The router as the controller sees it: the one source of truth about volumes.
 *
 * Every method throws {@linkcode VolumeError} `unavailable` when the router could not be asked or its answer could not
 * be read completely, `deadline` or `cancelled` when the context ends first. A method that changes something reads back
 * before it returns, so that an ambiguous end becomes clear.
 */
export interface VolumeStore {
  /** Reads one volume and its files, and the folder or file at `folder` if that is given. One command. */
  view(id: string, filePrefix: string, context: CallContext, folder?: string): Promise<VolumeView>;
  /** Reads everything that a create needs. One command, unless the router's output limit forces more. */
  createView(wanted: Wanted | undefined, context: CallContext): Promise<CreateView>;
  /** Reads one volume, and its source or the volumes made from it, and no other disk. One command. */
  sourceView(wanted: Wanted, source: SourceQuery, context: CallContext): Promise<SourceView>;
  /** Reads only the mounted pools and the uptime. One command. */
  state(context: CallContext): Promise<RouterState>;
  /** The mounted pools as they were read last, whenever that was. Asks nobody. */
  readonly lastPools: readonly Pool[];
  /** Lists every file-backed disk. One command, unless the router's output limit forces more. */
  inventory(context: CallContext): Promise<Inventory>;

  /** Lists the mounted pools, with the arrays below them that are not sound. One command. */
  poolHealth(context: CallContext): Promise<readonly Pool[]>;
  /** Finds files and folders whose path contains `part`, a text of `[a-z0-9./-]`. One command. */
  files(part: string, context: CallContext): Promise<FileView>;
  /** Reads which of these paths exist. One command, unless there are too many for one. */
  filesAt(paths: readonly string[], context: CallContext): Promise<FileView>;
  /**
   * Writes once if the premises hold, which are in the statement that writes, and reads back. One command. A write with more
   * premises than the comment goes in one command, or is not sent.
   */
  commit(write: Write, premises: readonly Premise[], context: CallContext): Promise<Commit | NotSent>;
  /**
   * Removes an image, or the subvolume with it, if no disk uses it; reads back every file whose path contains `part`.
   * One command.
   */
  removeImage(
    location: ImageLocation,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>>;
  /**
   * Makes a subvolume if no file's path contains `part` and no volume has the label of its file system, and reads back
   * the files whose path then does. One command.
   */
  addSubvolume(
    subvolume: NewSubvolume,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<Pick<FileView, "files">>>;
  /**
   * Copies a file to a free path, which can take hours. Returns whether the router reported that it is complete; after
   * any other end the copy is unusable. Only for routers that are known to report when a copy is complete.
   *
   * @param makeFolder the folder of the copy, to be made first
   */
  copyFile(
    from: string,
    to: string,
    context: CallContext,
    makeFolder?: NewFolder,
  ): Promise<{ readonly done: boolean; readonly refusal?: string }>;
  /**
   * Renames a file to a free path, if the guard holds; reads back every file whose path contains `part`. One command.
   */
  renameFile(
    from: string,
    to: string,
    guard: DiskGuard | undefined,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>>;
  /**
   * Makes folders where nothing is, each if its pool is mounted, in this order, and then removes empty ones. Reads nothing
   * back: whoever needs to know what came of it looks later. Returns why not all was done; what is refused keeps nothing else
   * from being done. As few commands as possible.
   *
   * @throws {VolumeError} invalid when a path is too long for a command
   */
  changeFolders(change: FolderChange, context: CallContext): Promise<string | undefined>;
  /** Resolves when the router can be asked right now, and is fit for this driver. */
  probe(context: CallContext): Promise<void>;
}
