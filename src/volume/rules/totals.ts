import { diskBytes, snapshotBytes } from "./capacity.ts";
import { poolOf } from "../model/ids.ts";
import { folderOf } from "../model/imported.ts";
import { isMigrating } from "./overdue_migration.ts";
import { judgeOwnership, type OwnedVolume } from "./ownership.ts";
import type { Inventory, Pool, StoredFile } from "../ports/ports.ts";
import type { Holder } from "../model/record.ts";

/** One look at every disk, and at the files of snapshots where it was at those too. */
export interface WholeLook extends Inventory {
  readonly files?: readonly StoredFile[];
}

/** A pool in numbers. */
export interface PoolFigures {
  readonly sizeBytes: bigint;
  readonly freeBytes: bigint;
  /** What its disks have together, whoever owns them. */
  readonly diskBytes: bigint;
  /** What is promised to snapshots beside that; undefined when they were not looked at. */
  readonly snapshotBytes: bigint | undefined;
}

/** A folder for volumes in numbers. */
export interface FolderFigures {
  /** The folder; {@linkcode elsewhere} for what lies in none that is allowed now. */
  readonly basePath: string;
  /** Mount point of its pool. */
  readonly poolName: string;
  /** Undefined while it is not mounted: then nothing is known of what lies there. */
  readonly pool: PoolFigures | undefined;
  /** This cluster's volumes. */
  readonly volumes: number;
  /** Nodes that hold one of them, each as often as it holds one. */
  readonly attachments: number;
  /** Volumes that two nodes share for a migration. */
  readonly migrations: number;
}

/** A volume of this cluster as a look has shown it: what people want to know of it. */
export interface VolumeFigures {
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
export interface Figures {
  /** The allowed folders in their order, then what lies elsewhere. */
  readonly folders: readonly FolderFigures[];
  /** This cluster's volumes, in the order of the look. */
  readonly volumes: readonly VolumeFigures[];
  /** Whether it was looked at snapshots too. */
  readonly withSnapshots: boolean;
}

/** Stands in the place of a folder for volumes in none that is allowed. */
export const elsewhere = "elsewhere";

/** Counts what a look has shown. What others have on the router counts only where it takes room. */
export function figuresOf(look: WholeLook, cluster: string, basePaths: readonly string[]): Figures {
  const counts = new Map([...basePaths, elsewhere].map((base) => [base, noVolumes()]));
  const volumes: VolumeFigures[] = [];
  for (const stored of look.volumes) {
    const ownership = judgeOwnership(stored, cluster);
    if (ownership.state !== "owned") continue;
    const base = folderOf(ownership.volume, cluster);
    const basePath = counts.has(base) ? base : elsewhere;
    const volume = volumeFigures(ownership.volume, basePath);
    const count = counts.get(basePath)!;
    count.volumes++;
    count.attachments += volume.holders.length;
    if (volume.migrating) count.migrations++;
    volumes.push(volume);
  }
  return {
    volumes,
    withSnapshots: look.files !== undefined,
    folders: [...counts].map(([basePath, count]) => {
      const poolName = basePath === elsewhere ? "" : poolOf(basePath);
      const pool = look.pools.find(({ mountPoint }) => mountPoint === poolName);
      return { basePath, poolName, pool: pool && poolFigures(pool, look), ...count };
    }),
  };
}

function volumeFigures({ stored, record }: OwnedVolume, basePath: string): VolumeFigures {
  return {
    id: stored.id,
    sizeBytes: stored.sizeBytes,
    basePath,
    holders: record.holders,
    exported: stored.exported,
    migrating: isMigrating(record),
    epoch: record.epoch?.counter ?? 0,
  };
}

function noVolumes() {
  return { volumes: 0, attachments: 0, migrations: 0 };
}

function poolFigures(pool: Pool, { volumes, files }: WholeLook): PoolFigures {
  return {
    sizeBytes: pool.sizeBytes,
    freeBytes: pool.freeBytes,
    diskBytes: diskBytes(pool, { volumes }),
    snapshotBytes: files && snapshotBytes(pool, { volumes, files }),
  };
}
