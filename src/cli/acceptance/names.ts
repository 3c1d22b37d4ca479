import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import { snapshotIdFor } from "../../volume/model/snapshots/snapshots.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import type { OwnMarks } from "../../router_profile/report/report.ts";

/** The kinds of volumes that are taken through life. */
export const lifeKinds = ["ext4", "xfs", "block"] as const;
/** One of {@linkcode lifeKinds}. */
export type LifeKind = typeof lifeKinds[number];

/** The cluster of every run: the next one finds by it what a killed one has left. */
export const clusterId = "rds-csi acceptance";
/** What the run's exports begin with: no driver in use gives such names, or disconnects them. */
export const nqnPrefix = "nqn.2026-11.io.srvlab.acc";
/** The node that this machine is, and one that must be refused. */
export const nodeId = "acceptance-1";
export const otherNodeId = "acceptance-2";

const cluster = clusterHash(clusterId);

/** The names of the volumes of one kind. */
export function volumesOf(
  kind: LifeKind,
): Readonly<Record<"volume" | "restored" | "cloned" | "snapshot", string>> {
  return {
    volume: `acceptance-${kind}`,
    restored: `acceptance-${kind}-restored`,
    cloned: `acceptance-${kind}-cloned`,
    snapshot: `acceptance-${kind}-snapshot`,
  };
}

/** The names of the other volumes. */
export const fenceNames = { fenced: "acceptance-fenced", bystander: "acceptance-bystander" } as const;
export const rebootName = "acceptance-rebooted";

const volumeNames = [
  ...lifeKinds.flatMap((kind) => {
    const { volume, restored, cloned } = volumesOf(kind);
    return [volume, restored, cloned];
  }),
  ...Object.values(fenceNames),
  rebootName,
];

/** The ids of everything that a run makes by the driver: always the same. */
export const volumeIds: readonly string[] = volumeNames.map(volumeIdFor);
export const snapshotIds: readonly string[] = lifeKinds.map((kind) =>
  snapshotIdFor(volumesOf(kind).snapshot, cluster)
);

/** By what a run's own objects are told from others. */
export const ownMarks: OwnMarks = { ids: [...volumeIds, ...snapshotIds], cluster, nqnPrefix };
