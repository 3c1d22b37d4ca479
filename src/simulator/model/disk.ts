import type { RecordValue } from "../value.ts";

/** The mounted file system of a disk on which files lie. */
export interface PoolState {
  /** First segment of the paths on it. */
  readonly mountPoint: string;
  /** Label of its file system, by which `/disk/btrfs/subvolume` knows it. */
  readonly label: string;
  /** What kind of file system it is; undefined where the router's profile says. */
  readonly filesystem: "btrfs" | "xfs" | undefined;
  readonly mounted: boolean;
  /** Whether the disks on it are gone from the list while it is not mounted. */
  readonly disksVanish: boolean;
  /** "clean", "degraded"… */
  readonly state: string;
  /** What is taken by everything that the simulator does not keep as files. */
  readonly otherBytes: bigint;
}

/** An item of `/disk`. Never changed, only replaced, so that an older one can be put back. */
export interface Disk {
  /** Shown as `*1F`. Given once, but not for good: a reboot renumbers. */
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
  /** Size that those see who are connected to the export; it may lag behind {@linkcode sizeBytes}. */
  readonly attachedBytes: bigint;
  /** With one leading slash; "" for a disk without a backing file. */
  readonly filePath: string;
  readonly fileSizeBytes: bigint;
  readonly mountFilesystem: boolean;
  readonly raidMaster: string;
  /** How many drives it needs, of a mirror that somebody has added. */
  readonly raidDevices: number | undefined;
  readonly exported: boolean;
  /** Undefined until it was set or exported once. */
  readonly port: number | undefined;
  /** Undefined until it was set or exported once. */
  readonly nqn: string | undefined;
  readonly allowHostName: string;
  readonly pool: PoolState | undefined;
  /** Properties that the model knows nothing of, as the control port gave them. */
  readonly extra: RecordValue;
}

/** What a disk is when nothing is said about it. */
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
  mountFilesystem: true,
  raidMaster: "none",
  raidDevices: undefined,
  exported: false,
  port: undefined,
  nqn: undefined,
  allowHostName: "",
  pool: undefined,
  extra: {},
};

/** What `/disk add` and `/disk set` can say about a disk; what is left out stays, or takes its default. */
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
  readonly raidType?: "1";
  readonly raidDevices?: number;
  readonly raidMaster?: string;
}

/** What `copy-from` takes of a disk: everything that can be set, and nothing of what is in its file. */
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

/** How an id is shown. */
export function formatId(id: number): string {
  return `*${id.toString(16).toUpperCase()}`;
}

/** The number behind a shown id; undefined when the text is none. */
export function parseId(text: string): number | undefined {
  return /^\*[0-9A-Fa-f]{1,8}$/.test(text) ? Number.parseInt(text.slice(1), 16) : undefined;
}

/** The subsystem under which a disk is served right now; undefined when it is not. */
export function servedNqn(disk: Disk | undefined): string | undefined {
  return disk !== undefined && disk.exported && !disk.disabled ? disk.nqn : undefined;
}
