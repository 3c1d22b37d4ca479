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
import type { CallContext } from "./system.ts";

/** A subvolume to be made. */
export interface NewSubvolume extends SubvolumeRef {
  /** The subvolume that it is to be a snapshot of; undefined for an empty one. */
  readonly parent?: SubvolumeRef;
  readonly readOnly: boolean;
  /** Has to hold when it is made: what its maker has concluded from the disk of the parent is still so then. */
  readonly guard?: DiskGuard;
}

/** What a subvolume says of itself. */
export interface StoredSubvolume {
  readonly readOnly: boolean;
  /** Whether it was made as a snapshot of one with that last segment of its path; "" when of none. */
  readonly parentName: string;
}

/** A condition that the router itself checks within the command: the disk is there with exactly that comment. */
export interface DiskGuard {
  readonly id: string;
  readonly comment: string;
}

/** A disk as it was read last. */
export type KnownDisk = Pick<StoredVolume, "id" | "comment" | "imagePath" | "sizeBytes" | "exported">;

/** A folder to be made if it is not there; on a Btrfs pool as a subvolume of that label. */
export interface NewFolder {
  readonly path: string;
  readonly label: string | undefined;
}

/** A disk to be added. It is never exported at first, and never if a disk is in its slot or on its image. */
export interface NewVolume {
  readonly id: string;
  readonly location: ImageLocation;
  /** Undefined when the image is there already, from `copied` or `subvolume`: it is adopted with the size it has. */
  readonly sizeBytes: bigint | undefined;
  readonly comment: string;
  /** The folder of the image or its subvolume, to be made first. */
  readonly makeFolder?: NewFolder;
  /** The image's subvolume, to be made first. */
  readonly subvolume?: NewSubvolume;
  /** A finished copy to be renamed to the image first, if the disk can then be added: both, or neither. */
  readonly copied?: { readonly path: string };
  /** Whether the image is somebody's, in whatever folder and of whatever name. */
  readonly imported?: boolean;
}

/** Under which NQN and at which TCP port a disk is exported. */
export interface VolumeExport {
  readonly nqn: string;
  readonly port: number;
}

/** What a change of a disk sets; what is left out stays. */
export interface VolumeChange {
  readonly comment?: string;
  readonly sizeBytes?: bigint;
  /** `false` withdraws the export. */
  readonly export?: VolumeExport | false;
  /** Host NQNs that may connect from now on; none lets everybody in. Whoever is connected stays. */
  readonly allowedHosts?: readonly string[];
  /** Lets the router mount no file system that it finds in the disk. */
  readonly neverMounted?: true;
  /**
   * Withdraws the export and turns it on as it was: whoever is connected has to come again. `export` is left out then. A new
   * size is given while it is off; whoever is cut off in between leaves it off under the comment of before.
   */
  readonly bounce?: boolean;
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

/** What nobody has looked at before a disk is added, exported or removed. */
export interface Unseen {
  /** What the names of all files of the volume begin with. */
  readonly filePrefix: string;
  readonly folder: string;
  /** How long the router has to be up, in milliseconds. */
  readonly settleMs: number;
}

/** How a mutation ended of a disk that nobody had looked for, or at. */
export interface UnseenMutation extends MutationOutcome<VolumeView> {
  /** Whether the answer was lost, so that the router may still do it later. */
  readonly isUnanswered: boolean;
}

/**
 * The router as the controller sees it: the one truth about volumes.
 *
 * Every method throws {@linkcode VolumeError} `unavailable` when the router could not be asked or its answer could not
 * be read whole, `deadline` or `cancelled` when the context ends first. A method that changes something settles an
 * ambiguous end by reading before it returns.
 */
export interface VolumeStore {
  /** Looks at one volume and at its files, and at `folder` if there is to be one. One command. */
  view(id: string, filePrefix: string, context: CallContext, folder?: string): Promise<VolumeView>;
  /** Looks at everything. One command, unless the router's output limit forces more. */
  createView(wanted: Wanted | undefined, context: CallContext): Promise<CreateView>;
  /** Looks at one volume, and at what it is made from or what is made from it: at no other disk. One command. */
  sourceView(wanted: Wanted, source: SourceQuery, context: CallContext): Promise<SourceView>;
  /**
   * Looks at what was made from a source: the file-backed disks whose comment holds the text of it, see `formatSource()`, and
   * the files whose path holds `part`. One command, unless the router's output limit forces more.
   */
  madeFrom(source: string, part: string, context: CallContext): Promise<Inventory & FileView>;
  /** Reads the mounted pools and the uptime alone. One command. */
  state(context: CallContext): Promise<RouterState>;
  /** Lists every file-backed disk. One command, unless the router's output limit forces more. */
  inventory(context: CallContext): Promise<Inventory>;

  /** Lists the mounted pools, with the arrays below them that are not sound. One command. */
  poolHealth(context: CallContext): Promise<readonly Pool[]>;
  /** Looks for files and folders whose path holds `part`, a text of `[a-z0-9./-]`. One command. */
  files(part: string, context: CallContext): Promise<FileView>;
  /** Looks which of these paths are there. One command, unless there are too many for one. */
  filesAt(paths: readonly string[], context: CallContext): Promise<FileView>;
  /** Looks at one subvolume; undefined when there is none. One command. */
  subvolume(subvolume: SubvolumeRef, context: CallContext): Promise<StoredSubvolume | undefined>;
  /** Adds a disk (after what has to be made for it), never exported, and reads every disk back. One command. */
  add(volume: NewVolume, context: CallContext): Promise<MutationOutcome<Inventory>>;
  /** The same, and reads only that disk back. */
  addAlone(volume: NewVolume, context: CallContext): Promise<MutationOutcome<VolumeView>>;
  /**
   * Adds a blank disk that nobody has looked for, if the router finds no disk and no file of it, and its folder on its mounted
   * pool, and reads only that disk back. One command; undefined, and nothing sent, where it is not known that the router is up
   * for long enough, or one command is too short.
   */
  addUnseen(
    volume: NewVolume,
    unseen: Unseen,
    context: CallContext,
  ): Promise<UnseenMutation | undefined>;
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
   * Turns the export of a disk on that nobody has looked at, with whatever else changes, and reads it back: if its comment is
   * exactly the guard's, its export is off, the router has not mounted it, no other path of a disk holds the prefix, and its pool
   * is mounted. One command; undefined, and nothing changed, where one command is too short, the router names exports after
   * their slots, or it could not be asked.
   */
  exportUnseen(
    disk: DiskGuard,
    change: VolumeChange,
    unseen: Pick<Unseen, "filePrefix" | "folder">,
    context: CallContext,
  ): Promise<UnseenMutation | undefined>;
  /**
   * Grows a disk that nobody has looked at, with a new comment, and reads it back: if it is exactly as it is given here, its image
   * is there, and its pool is mounted. One command; undefined, and nothing changed, where one command is too short, or it could
   * not be asked.
   */
  growUnseen(
    disk: KnownDisk,
    change: Required<Pick<VolumeChange, "comment" | "sizeBytes">>,
    context: CallContext,
  ): Promise<UnseenMutation | undefined>;
  /**
   * Removes a disk if its comment is still exactly `expectedComment`, then its image, or the subvolume with it, which goes
   * only when no disk uses it any more; reads back what is left of the file-name prefix. One command.
   */
  remove(
    disk: DiskGuard,
    location: ImageLocation,
    filePrefix: string,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>>;
  /**
   * Removes a disk that nobody has looked at, and its image or the subvolume with it: if its comment is exactly the guard's, its
   * export is off, its path and no other one of a disk holds the prefix, and its pool is mounted. Shows what is left: nothing,
   * or what a second command reads. One command; undefined, and nothing changed, where it is not known that the router is up for
   * long enough, or where the image lies, one command is too short, or it could not be asked.
   */
  removeUnseen(
    disk: DiskGuard,
    imagePath: string,
    unseen: Pick<Unseen, "filePrefix" | "settleMs">,
    context: CallContext,
  ): Promise<UnseenMutation | undefined>;
  /** Removes an image, or the subvolume with it, if no disk uses it; reads back every file that holds `part`. One command. */
  removeImage(
    location: ImageLocation,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>>;
  /**
   * Makes a subvolume if no file's path holds `part` and no volume has the label of its file system, and reads back the files
   * whose path then does. One command.
   */
  addSubvolume(
    subvolume: NewSubvolume,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<Pick<FileView, "files">>>;
  /**
   * Copies a file to a path that is free, which can take hours, and tells whether the router said that it is done; after
   * any other end the copy is of no use. Only where the router is known to answer when a copy is whole.
   *
   * @param makeFolder the folder of the copy, to be made first
   */
  copyFile(
    from: string,
    to: string,
    context: CallContext,
    makeFolder?: NewFolder,
  ): Promise<{ readonly done: boolean; readonly refusal?: string }>;
  /** Renames a file to a path that is free, if the guard holds; reads back every file that holds `part`. One command. */
  renameFile(
    from: string,
    to: string,
    guard: DiskGuard | undefined,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>>;
  /** Whether the router can be asked right now, and is fit for this driver. */
  probe(context: CallContext): Promise<void>;
}
