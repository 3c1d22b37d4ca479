import type { RecordValue } from "../value.ts";

/** The mounted file system of a disk on which files lie. */
export interface PoolState {
  /** First segment of the paths on it. */
  readonly mountPoint: string;
  /** Label of its file system, which `/disk/btrfs/subvolume` uses. */
  readonly label: string;
  /** Its type of file system; undefined for the one of the router's profile. */
  readonly filesystem: "btrfs" | "xfs" | undefined;
  readonly mounted: boolean;
  /** Whether the disks on it disappear from the list while it is not mounted. */
  readonly disksVanish: boolean;
  /** "clean", "degraded"… */
  readonly state: string;
  /** The space taken by everything that the simulator does not store as files. */
  readonly otherBytes: bigint;
}

/** An item of `/disk`. It is never changed, only replaced, so that an older one can be restored. */
export interface Disk {
  /** Shown as `*1F`. It is never reused, but a reboot renumbers all. */
  readonly id: number;
  readonly slot: string;
  /** "file", "raid", "hardware"… */
  readonly type: string;
  readonly comment: string;
  readonly disabled: boolean;
  readonly model: string;
  readonly serial: string;
  readonly interface: string;
  /** Size of the block device. */
  readonly sizeBytes: bigint;
  /** The size that connected hosts see; it may lag behind {@linkcode sizeBytes}. */
  readonly attachedBytes: bigint;
  /** With one leading slash; "" for a disk without a backing file. */
  readonly filePath: string;
  readonly fileSizeBytes: bigint;
  /** Whether its row has no `size`, and a rounded `file-size`. */
  readonly sizeUnprinted: boolean;
  readonly mountFilesystem: boolean;
  readonly raidMaster: string;
  /** How many drives a mirror needs. */
  readonly raidDevices: number | undefined;
  readonly exported: boolean;
  /** Undefined until it was set or exported once. */
  readonly port: number | undefined;
  /** Undefined until it was set or exported once. */
  readonly nqn: string | undefined;
  readonly allowHostName: string;
  /** Whether its file system is shared over NFS. */
  readonly nfsSharing: boolean;
  readonly smbSharing: boolean;
  readonly mediaSharing: boolean;
  readonly pool: PoolState | undefined;
  /** Properties that the model does not know, as the control port set them. */
  readonly extra: RecordValue;
}

/** The defaults of a disk. */
export const plainDisk: Omit<Disk, "id" | "slot"> = {
  type: "hardware",
  comment: "",
  disabled: false,
  model: "",
  serial: "",
  interface: "",
  sizeBytes: 0n,
  attachedBytes: 0n,
  filePath: "",
  fileSizeBytes: 0n,
  sizeUnprinted: false,
  mountFilesystem: true,
  raidMaster: "none",
  raidDevices: undefined,
  exported: false,
  port: undefined,
  nqn: undefined,
  allowHostName: "",
  nfsSharing: false,
  smbSharing: false,
  mediaSharing: false,
  pool: undefined,
  extra: {},
};

/** The settings of `/disk add` and `/disk set`; one that is left out stays, or gets its default. */
export interface DiskSettings {
  readonly type?: string;
  readonly slot?: string;
  readonly comment?: string;
  readonly disabled?: boolean;
  readonly filePath?: string;
  readonly fileSizeBytes?: bigint;
  readonly mountFilesystem?: boolean;
  readonly exported?: boolean;
  readonly port?: number;
  readonly nqn?: string;
  readonly allowHostName?: string;
  readonly nfsSharing?: boolean;
  readonly smbSharing?: boolean;
  readonly mediaSharing?: boolean;
  readonly raidType?: "1";
  readonly raidDevices?: number;
  readonly raidMaster?: string;
}

/** What `copy-from` takes from a disk: all its settings, and nothing of its file's content. */
export function settingsOf(disk: Disk): DiskSettings {
  const { type, slot, comment, disabled, mountFilesystem, exported, allowHostName, port, nqn } = disk;
  return {
    type,
    slot,
    comment,
    disabled,
    mountFilesystem,
    exported,
    allowHostName,
    ...(disk.filePath === "" ? {} : { filePath: disk.filePath, fileSizeBytes: disk.fileSizeBytes }),
    ...(port === undefined ? {} : { port }),
    ...(nqn === undefined ? {} : { nqn }),
  };
}

/** Formats an id. */
export function formatId(id: number): string {
  return `*${id.toString(16).toUpperCase()}`;
}

/** Parses a formatted id; undefined when it is invalid. */
export function parseId(text: string): number | undefined {
  return /^\*[0-9A-Fa-f]{1,8}$/.test(text) ? Number.parseInt(text.slice(1), 16) : undefined;
}

/** The subsystem under which a disk is served right now; undefined when it is not. */
export function servedNqn(disk: Disk | undefined): string | undefined {
  return disk !== undefined && disk.exported && !disk.disabled ? disk.nqn : undefined;
}
