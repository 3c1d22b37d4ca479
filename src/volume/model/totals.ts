import type { Holder } from "./record.ts";
/** Totals of a pool. */
export interface PoolTotals {
  readonly sizeBytes: bigint;
  readonly freeBytes: bigint;
  /** The total size of its disks, of every owner. */
  readonly diskBytes: bigint;
  /** What is promised to snapshots besides; undefined when snapshots were not read. */
  readonly snapshotBytes: bigint | undefined;
  /** A volume, of any owner, that has the pool's label: no subvolume is made or removed there meanwhile. */
  readonly labelTakenBy?: string;
}

/** Totals of a folder for volumes. */
export interface FolderTotals {
  /** The folder; {@linkcode elsewhere} for volumes outside the allowed folders. */
  readonly basePath: string;
  /** Mount point of its pool. */
  readonly poolName: string;
  /** Undefined while it is not mounted: its content is unknown then. */
  readonly pool: PoolTotals | undefined;
  /** This cluster's volumes. */
  readonly volumes: number;
  /** Number of holders of its volumes; a node counts once for each volume that it holds. */
  readonly attachments: number;
  /** Volumes that two nodes share for a migration. */
  readonly migrations: number;
}

/** What people want to know of a volume of this cluster, from one inventory. */
export interface VolumeTotals {
  readonly id: string;
  readonly sizeBytes: bigint;
  /** The folder of its image; {@linkcode elsewhere} for one outside the allowed folders. */
  readonly basePath: string;
  /** The holders in its record. */
  readonly holders: readonly Holder[];
  readonly exported: boolean;
  readonly migrating: boolean;
  /**
   * The counter of its epoch; 0 before the first. The rest is left out: on a router without other checks, the complete
   * name of an export admits a host.
   */
  readonly epoch: number;
}

/** Totals of a router for this cluster's volumes. */
export interface Totals {
  /** The allowed folders in their order, then {@linkcode elsewhere}. */
  readonly folders: readonly FolderTotals[];
  /** This cluster's volumes, in the order of the inventory. */
  readonly volumes: readonly VolumeTotals[];
  /** Whether snapshots were read too. */
  readonly withSnapshots: boolean;
}

/** Represents the folder of volumes outside the allowed folders. */
export const elsewhere = "elsewhere";
