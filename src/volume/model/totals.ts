import type { Holder } from "./record.ts";
/** A pool in numbers. */
export interface PoolTotals {
  readonly sizeBytes: bigint;
  readonly freeBytes: bigint;
  /** What its disks have together, whoever owns them. */
  readonly diskBytes: bigint;
  /** What is promised to snapshots beside that; undefined when they were not looked at. */
  readonly snapshotBytes: bigint | undefined;
}

/** A folder for volumes in numbers. */
export interface FolderTotals {
  /** The folder; {@linkcode elsewhere} for what lies in none that is allowed now. */
  readonly basePath: string;
  /** Mount point of its pool. */
  readonly poolName: string;
  /** Undefined while it is not mounted: then nothing is known of what lies there. */
  readonly pool: PoolTotals | undefined;
  /** This cluster's volumes. */
  readonly volumes: number;
  /** Nodes that hold one of them, each as often as it holds one. */
  readonly attachments: number;
  /** Volumes that two nodes share for a migration. */
  readonly migrations: number;
}

/** A volume of this cluster as a look has shown it: what people want to know of it. */
export interface VolumeTotals {
  readonly id: string;
  readonly sizeBytes: bigint;
  /** The folder that it lies in; {@linkcode elsewhere} for one that is not allowed now. */
  readonly basePath: string;
  /** Who holds it, as its record says. */
  readonly holders: readonly Holder[];
  readonly exported: boolean;
  readonly migrating: boolean;
  /**
   * The counter of its epoch; 0 before the first. Without the rest: the whole name of an export is what lets a host in
   * where the router knows no other check.
   */
  readonly epoch: number;
}

/** What a router with this cluster's volumes looks like in numbers. */
export interface Totals {
  /** The allowed folders in their order, then what lies elsewhere. */
  readonly folders: readonly FolderTotals[];
  /** This cluster's volumes, in the order of the look. */
  readonly volumes: readonly VolumeTotals[];
  /** Whether it was looked at snapshots too. */
  readonly withSnapshots: boolean;
}

/** Stands in the place of a folder for volumes in none that is allowed. */
export const elsewhere = "elsewhere";
