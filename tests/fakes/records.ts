import { epochNqn } from "../../src/volume/model/epoch.ts";
import { nameDigest } from "../../src/volume/model/ids/ids.ts";
import { snapshotIdFor } from "../../src/volume/model/snapshots/snapshots.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { filePrefixOf } from "../../src/volume/model/image_names.ts";
import { assertOwned } from "../../src/volume/rules/ownership.ts";
import type { Pool, StoredVolume } from "../../src/volume/model/inventory.ts";
import {
  formatComment,
  type Holder,
  newComment,
  type OwnedVolume,
  type VolumeRecord,
} from "../../src/volume/model/record.ts";

/** The cluster of the tests' volumes. */
export const testCluster = clusterHash("test");
/** The folder of the tests' volumes. */
export const testBase = "/pool/csi";
/** The prefix of their NQNs. */
export const testPrefix = "nqn.2000-02.com.mikrotik";

/** The pool of the tests' volumes, on Btrfs. */
export function aPool(over: Partial<Pool> = {}): Pool {
  return {
    mountPoint: "pool",
    filesystem: "btrfs",
    sizeBytes: 100n << 30n,
    freeBytes: 100n << 30n,
    state: "clean",
    subvolumeLabel: "pool-fs",
    ...over,
  };
}

/** The plain file of a volume of the test cluster. */
export function plainImage(id: string, base = testBase): string {
  return `${base}/${filePrefixOf(id, testCluster)}.img`;
}

/** The image in the subvolume of a volume of the test cluster. */
export function subvolumeImage(id: string, base = testBase): string {
  return `${base}/${filePrefixOf(id, testCluster)}/disk.img`;
}

/** The id of a snapshot of the test cluster. */
export function aSnapshotId(name: string): string {
  return snapshotIdFor(name, testCluster);
}

/** A record of the test cluster that was never published. */
export function aRecord(over: Partial<VolumeRecord> = {}): VolumeRecord {
  return {
    cluster: testCluster,
    name: nameDigest("a"),
    capabilities: "ext4/w",
    parameters: "00000000",
    epoch: undefined,
    blankEpoch: 1,
    withdrawnAtSeconds: undefined,
    source: undefined,
    holders: [],
    ...over,
  };
}

/** A single writer. */
export function aHolder(nodeId: string, over: Partial<Holder> = {}): Holder {
  return { nodeId, sinceSeconds: 1_700_000_000, mode: "single-node-writer", readOnly: false, ...over };
}

/** A disk with that record, of 1 GiB in a subvolume; exported under the record's epoch when it has holders. */
export function aDisk(record: VolumeRecord, over: Partial<StoredVolume> = {}): StoredVolume {
  const id = over.id ?? "pvc-1";
  return {
    id,
    imagePath: subvolumeImage(id),
    sizeBytes: 1n << 30n,
    exported: record.holders.length > 0,
    exportNqn: record.epoch === undefined ? "" : epochNqn(testPrefix, id, record.epoch),
    exportPort: record.epoch === undefined ? 0 : 4420,
    comment: formatComment(newComment(record)),
    ...over,
  };
}

/** A volume of the test cluster. */
export function aVolume(
  record: Partial<VolumeRecord> = {},
  disk: Partial<StoredVolume> = {},
): OwnedVolume {
  return assertOwned(aDisk(aRecord(record), disk), testCluster, "test");
}
