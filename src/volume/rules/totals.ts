import { elsewhere, type PoolTotals, type Totals, type VolumeTotals } from "../model/totals.ts";
import { diskBytes, snapshotBytes } from "./capacity.ts";
import { poolOf } from "../model/ids/ids.ts";
import { folderOf } from "../model/sources.ts";
import { isMigrating } from "./migration_pairs.ts";
import { judgeOwnership } from "./ownership.ts";
import type { Inventory, Pool, StoredFile } from "../model/inventory.ts";
import type { OwnedVolume } from "../model/record.ts";

/** An inventory, with the files of snapshots if they were read. */
export interface WholeInventory extends Inventory {
  readonly files?: readonly StoredFile[];
}

/** Counts an inventory. Other owners' disks count only for the space that they take. */
export function totalsOf(reading: WholeInventory, cluster: string, basePaths: readonly string[]): Totals {
  const counts = new Map([...basePaths, elsewhere].map((base) => [base, noVolumes()]));
  // Thousands of volumes then share one string, instead of each keeping its image's path in memory.
  const known = new Map([...counts.keys()].map((base) => [base, base]));
  const volumes: VolumeTotals[] = [];
  for (const stored of reading.volumes) {
    const ownership = judgeOwnership(stored, cluster);
    if (ownership.state !== "owned") continue;
    const base = folderOf(ownership.volume, cluster);
    const basePath = known.get(base) ?? elsewhere;
    const volume = volumeTotals(ownership.volume, basePath);
    const count = counts.get(basePath)!;
    count.volumes++;
    count.attachments += volume.holders.length;
    if (volume.migrating) count.migrations++;
    volumes.push(volume);
  }
  return {
    volumes,
    withSnapshots: reading.files !== undefined,
    folders: [...counts].map(([basePath, count]) => {
      const poolName = basePath === elsewhere ? "" : poolOf(basePath);
      const pool = reading.pools.find(({ mountPoint }) => mountPoint === poolName);
      return { basePath, poolName, pool: pool && poolTotals(pool, reading), ...count };
    }),
  };
}

function volumeTotals({ stored, record }: OwnedVolume, basePath: string): VolumeTotals {
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

function poolTotals(pool: Pool, { volumes, files }: WholeInventory): PoolTotals {
  return {
    sizeBytes: pool.sizeBytes,
    freeBytes: pool.freeBytes,
    diskBytes: diskBytes(pool, { volumes }),
    snapshotBytes: files && snapshotBytes(pool, { volumes, files }),
    ...pool.labelTakenBy === undefined ? {} : { labelTakenBy: pool.labelTakenBy },
  };
}
