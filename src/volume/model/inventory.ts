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
  /** What else the router does with the disk, in words; absent, nothing. Where all volumes are read only that it is mounted. */
  readonly routerUses?: readonly string[];
  /** Whether the router mounts a file system that it finds in the disk. Not read where all volumes are. */
  readonly mayBeMounted?: true;
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
  /** As the router words it, such as "clean" or "clean, sync:repair, resync = 3%"; "" where it says nothing. */
  readonly state: string;
  /** Arrays below this one that are not clean, such as a mirror of a striped pool. Read only where pools alone are. */
  readonly unsoundArrays?: readonly { readonly slot: string; readonly state: string }[];
  /** The label under which Btrfs subvolumes are made on it; undefined where there are none. */
  readonly subvolumeLabel: string | undefined;
  /** A file-backed disk whose own bytes say that it is a file system of that label. Where one volume is read only its own. */
  readonly labelTakenBy?: string;
}

/** A Btrfs subvolume. */
export interface SubvolumeRef {
  /** Label of its file system. */
  readonly label: string;
  /** Its path within the file system, without slashes at the ends. */
  readonly path: string;
}

/** Where an image lies, or is to lie. */
export interface ImageLocation {
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
  /** Other disks whose image path holds the file-name prefix asked about. */
  readonly sharers: readonly StoredVolume[];
  /** Every file and folder whose path holds the file-name prefix asked about. */
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
  /** See `filePrefixOf()`. */
  readonly filePrefix: string;
  /** The folder that the image goes into, or its subvolume. */
  readonly folder: string;
}

/** An inventory together with files: what a create decides on. */
export interface CreateView extends Inventory {
  /** The disk in the wanted slot when it is not file-backed. */
  readonly foreign: ForeignDisk | undefined;
  /** Every file and folder of the file-name prefix, the wanted folder if it is there, and all snapshots, see `anySnapshot`. */
  readonly files: readonly StoredFile[];
}

/** What a volume or a snapshot is made from: a volume by its id, a snapshot by the text that all its paths hold. */
export type SourceQuery = { readonly id: string } | { readonly part: string };

/** One look at a volume and at what one is made from; its files are those of both, and the wanted folder if it is there. */
export interface SourceView extends VolumeView {
  /** The disk of the source, when that is a volume and file-backed. */
  readonly source: StoredVolume | undefined;
}

/** One look at files. */
export interface FileView extends RouterState {
  /** Every file and folder whose path holds the text asked about. */
  readonly files: readonly StoredFile[];
}
