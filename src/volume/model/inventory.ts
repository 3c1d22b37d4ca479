/** A file-backed disk as the router reports it. Its `comment` holds the record (see `record.ts`), or something else. */
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
  /**
   * What else the router does with the disk, for people; absent for nothing. When all volumes are read, it only says
   * whether the disk is mounted.
   */
  readonly routerUses?: readonly string[];
  /** Whether the router mounts a file system that it finds on the disk. Not read when all volumes are read. */
  readonly mayBeMounted?: true;
  /** The whole comment, unchanged. */
  readonly comment: string;
  /**
   * Why the router's row of it cannot be read, beside what every row has: its slot, type, path and comment. Its size is
   * then the printed one, rounded up, and it counts as exported unless the row says that it is not. Absent where it was read.
   */
  readonly unreadable?: string;
  /** Whether no size at all is known of a disk that cannot be read; `sizeBytes` is then 0. */
  readonly sizeUnknown?: true;
}

/** A disk that this driver did not make and must not touch: hardware, RAID, a disk without a backing file. */
export interface ForeignDisk {
  readonly id: string;
  readonly kind: string;
}

/** A mounted file system of the router that holds images. */
export interface Pool {
  /** First segment of its paths, without slashes. */
  readonly mountPoint: string;
  readonly filesystem: string;
  readonly sizeBytes: bigint;
  readonly freeBytes: bigint;
  /** The router's own text, such as "clean" or "clean, sync:repair, resync = 3%"; "" where it reports none. */
  readonly state: string;
  /** Arrays below this one that are not clean, such as a mirror of a striped pool. Read only by a read of the pools. */
  readonly unsoundArrays?: readonly { readonly slot: string; readonly state: string }[];
  /** The label under which Btrfs subvolumes are made on it; undefined where the pool has none, or shares it. */
  readonly subvolumeLabel: string | undefined;
  /**
   * A file-backed disk whose content claims to be a file system of that label. A read of one volume checks only that
   * volume.
   */
  readonly labelTakenBy?: string;
  /** A mounted disk with the same label at another mount point: by the label nobody can tell which one is meant. */
  readonly labelSharedWith?: LabelTwin;
}

/** A pool of which the router's row cannot be read, or any other disk that it may have mounted. */
export interface UnreadablePool {
  /** As a pool's; "" where it cannot be read either. */
  readonly mountPoint: string;
  /** What cannot be read. */
  readonly reason: string;
}

/** A disk that the router has mounted beside a pool, under the pool's label. */
export interface LabelTwin {
  /** Its slot. */
  readonly id: string;
  /** Whether the router shows the same UUID for both: they are one file system. False where it was not read. */
  readonly sameFilesystem: boolean;
}

/** A Btrfs subvolume. */
export interface SubvolumeRef {
  /** Label of its file system. */
  readonly label: string;
  /** Its path within the file system, without slashes at the ends. */
  readonly path: string;
}

/** Where an image is, or will be. */
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

/** State that every read of the router returns as well, so that absence can be judged. */
export interface RouterState {
  /** The mounted pools. */
  readonly pools: readonly Pool[];
  /** Disks that are mounted, or may be, and whose rows cannot be read: no pools, and not absent. Absent for none. */
  readonly unreadablePools?: readonly UnreadablePool[];
  /** Milliseconds since the router booted. */
  readonly upMs: number;
}

/** A read of one volume. */
export interface VolumeView extends RouterState {
  /** The disk in that slot, when it is file-backed. */
  readonly volume: StoredVolume | undefined;
  /** The disk in that slot when it is of any other type. */
  readonly foreign: ForeignDisk | undefined;
  /** Other disks whose image path contains the file-name prefix. */
  readonly sharers: readonly StoredVolume[];
  /** Every file and folder whose path contains the file-name prefix. */
  readonly files: readonly StoredFile[];
}

/** A read of all disks. */
export interface Inventory extends RouterState {
  /** Every file-backed disk of every owner, ordered by id. */
  readonly volumes: readonly StoredVolume[];
}

/** The subject of a create. */
export interface Wanted {
  readonly id: string;
  /** See `filePrefixOf()`. */
  readonly filePrefix: string;
  /** The folder that the image goes into, or its subvolume. */
  readonly folder: string;
}

/** An inventory together with files: the input of a create. */
export interface CreateView extends Inventory {
  /** The disk in the wanted slot when it is not file-backed. */
  readonly foreign: ForeignDisk | undefined;
  /**
   * Every file and folder of the file-name prefix, the wanted folder if it exists, and all snapshots, see
   * `anySnapshot`.
   */
  readonly files: readonly StoredFile[];
}

/** The source of a volume or a snapshot: a volume by its id, a snapshot by the text that all its paths contain. */
export type SourceQuery = { readonly id: string } | { readonly part: string };

/** A read of a volume and of its source. Its files are those of both, and the wanted folder if it exists. */
export interface SourceView extends VolumeView {
  /** The disk of the source, when that is a volume and file-backed. */
  readonly source: StoredVolume | undefined;
}

/** A read of files. */
export interface FileView extends RouterState {
  /** Every file and folder whose path contains the requested text. */
  readonly files: readonly StoredFile[];
}
