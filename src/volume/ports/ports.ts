/**
 * What the rules and services need from the world, as interfaces: the router, the node's devices and file systems,
 * time and chance. Adapters implement them; tests and the deterministic simulation hand in others.
 *
 * Nothing in here does anything.
 *
 * @module
 */

export type * from "./node_events.ts";
export type * from "./node_ports.ts";

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
  /** Host NQNs that may connect; absent or empty, everybody may. Not read where all volumes are. */
  readonly allowedHosts?: readonly string[];
  /** What else the router does with the disk, in words; absent, nothing. Not read where all volumes are. */
  readonly routerUses?: readonly string[];
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
  /** As the router words it, such as "clean"; "" where it says nothing. */
  readonly state: string;
  /** The label under which Btrfs subvolumes are made on it; undefined where there are none. */
  readonly subvolumeLabel: string | undefined;
}

/** A Btrfs subvolume. */
export interface SubvolumeRef {
  /** Label of its file system. */
  readonly label: string;
  /** Its path within the file system, without slashes at the ends. */
  readonly path: string;
}

/** Where an image lies, or is to lie. */
export interface ImagePlace {
  readonly path: string;
  /** The subvolume that holds the image and nothing else; undefined for a plain file. */
  readonly subvolume: SubvolumeRef | undefined;
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
  /** Whether an export is named after its slot and nothing else (RouterOS before 7.21), so that no node can be fenced. */
  readonly unfenced?: boolean;
}

/** One look at one volume. */
export interface VolumeView extends RouterState {
  /** The disk in that slot, when it is file-backed. */
  readonly volume: StoredVolume | undefined;
  /** The disk in that slot when it is anything else. */
  readonly foreign: ForeignDisk | undefined;
  /** Other disks whose image path holds the stem asked about. */
  readonly sharers: readonly StoredVolume[];
  /** Every file and folder whose path holds the stem asked about. */
  readonly files: readonly StoredFile[];
}

/** One look at everything. */
export interface Inventory extends RouterState {
  /** Every file-backed disk, of whatever owner, ordered by id. */
  readonly volumes: readonly StoredVolume[];
}

/** What a create is about. */
export interface Wanted {
  readonly id: string;
  /** See `stemOf()`. */
  readonly stem: string;
  /** The folder that the image goes into, or its subvolume. */
  readonly folder: string;
}

/** An inventory together with files: what a create decides on. */
export interface CreateView extends Inventory {
  /** The disk in the wanted slot when it is not file-backed. */
  readonly foreign: ForeignDisk | undefined;
  /** Every file and folder of the stem, the wanted folder if it is there, and all snapshots, see `anySnapshot`. */
  readonly files: readonly StoredFile[];
}

/** One look at files. */
export interface FileView extends RouterState {
  /** Every file and folder whose path holds the text asked about. */
  readonly files: readonly StoredFile[];
}

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

/** A folder to be made if it is not there; on a Btrfs pool as a subvolume of that label. */
export interface NewFolder {
  readonly path: string;
  readonly label: string | undefined;
}

/** A disk to be added. It is never exported at first, and never if a disk is in its slot or on its image. */
export interface NewVolume {
  readonly id: string;
  readonly place: ImagePlace;
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

/** What a change of a disk sets; what is left out stays. */
export interface VolumeChange {
  readonly comment?: string;
  readonly sizeBytes?: bigint;
  /** `false` withdraws the export. */
  readonly export?: { readonly nqn: string; readonly port: number } | false;
  /** Host NQNs that may connect from now on; none lets everybody in. Whoever is connected stays. */
  readonly allowedHosts?: readonly string[];
  /** Lets the router mount no file system that it finds in the disk. */
  readonly neverMounted?: true;
  /**
   * Withdraws the export and turns it on as it was, in the same command: whoever is connected has to come again. `export`
   * is left out then.
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

/**
 * The router as the controller sees it: the one truth about volumes.
 *
 * Every method throws {@linkcode VolumeError} `unavailable` when the router could not be asked or its answer could not
 * be read whole, `deadline` or `cancelled` when the context ends first. A method that changes something settles an
 * ambiguous end by reading before it returns.
 */
export interface VolumeStore {
  /** Looks at one volume and at its files. One command. */
  view(id: string, stem: string, context: CallContext): Promise<VolumeView>;
  /** Looks at everything. One command, unless the router's output limit forces more. */
  createView(wanted: Wanted | undefined, context: CallContext): Promise<CreateView>;
  /** Lists every file-backed disk. One command, unless the router's output limit forces more. */
  inventory(context: CallContext): Promise<Inventory>;
  /** Looks for files and folders whose path holds `part`, a text of `[a-z0-9./-]`. One command. */
  files(part: string, context: CallContext): Promise<FileView>;
  /** Looks which of these paths are there. One command, unless there are too many for one. */
  filesAt(paths: readonly string[], context: CallContext): Promise<FileView>;
  /** Looks at one subvolume; undefined when there is none. One command. */
  subvolume(subvolume: SubvolumeRef, context: CallContext): Promise<StoredSubvolume | undefined>;
  /** Adds a disk (after what has to be made for it), never exported, and reads every disk back. One command. */
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
   * Removes a disk if its comment is still exactly `expectedComment`, then its image, or the subvolume with it, which goes
   * only when no disk uses it any more; reads back what is left of the stem. One command.
   */
  remove(
    disk: DiskGuard,
    place: ImagePlace,
    stem: string,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>>;
  /** Removes an image, or the subvolume with it, if no disk uses it; reads back every file that holds `part`. One command. */
  removeImage(place: ImagePlace, part: string, context: CallContext): Promise<MutationOutcome<FileView>>;
  /** Makes a subvolume if no file's path holds `part`, and reads back those that then do. One command. */
  addSubvolume(
    subvolume: NewSubvolume,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>>;
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

// ---------------------------------------------------------------------------------------------------------------
// The cluster

/** Which nodes exist. */
export interface NodeDirectory {
  /** Whether a node of that id is known to the cluster. */
  isKnown(nodeId: string, context: CallContext): Promise<boolean>;
}
