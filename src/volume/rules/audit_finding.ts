import { formatSource } from "../model/sources.ts";
import type { AuditKind } from "../model/audit_kinds.ts";
import type { ClusterVolume, NodeAttachment, UnknownVolumeAttachment } from "../ports/cluster_view.ts";
import { judgeOwnership } from "./ownership.ts";
import type { FileView, Inventory, StoredVolume } from "../model/inventory.ts";

/** One thing on the router that lacks its owner, or lacks itself. */
export interface AuditFinding {
  readonly kind: AuditKind;
  /** The volume or the snapshot; of an attachment whose PersistentVolume is gone that one's name. */
  readonly id: string;
  /** The image, the copy or the subvolume; "" where there is none. */
  readonly path: string;
  /** For people. */
  readonly found: string;
  /** Since when it has been so, as the record says; undefined when nothing tells. In seconds since the Unix epoch. */
  readonly sinceSeconds: number | undefined;
  /** Why it is not deleted, whoever asks; undefined when it may be. */
  readonly kept: string | undefined;
  /** Of a disk that may be deleted: the comment it was judged by. */
  readonly comment?: string;
}

/** What an audit is about. */
export interface AuditScope {
  /** Hash of this cluster's id. */
  readonly cluster: string;
  readonly basePaths: readonly string[];
  /** What the cluster uses; undefined when it was not asked. */
  readonly used: ClusterUse | undefined;
  /** Whether a person vouches for what no cluster was asked about. */
  readonly vouched: boolean;
  readonly nowMs: number;
  /** Whether a copy of that volume or snapshot is being made by this very process. */
  readonly isCopying: (id: string) => boolean;
}

/** What the cluster says that it uses. */
export interface ClusterUse {
  readonly volumes: readonly ClusterVolume[];
  readonly attachments: readonly NodeAttachment[];
  /** Volume handles of other drivers. @default {none} */
  readonly others?: ReadonlySet<string>;
  /** Snapshot handles; undefined when the cluster has no VolumeSnapshotContents, or does not show them. */
  readonly snapshots?: ReadonlySet<string>;
  /** Attachments whose PersistentVolume is gone. */
  readonly orphans: readonly UnknownVolumeAttachment[];
}

/** One look at the router and what is looked up in it for each of thousands of disks and files. */
export interface AuditView extends Inventory, FileView {
  /** All files and folders. */
  readonly paths: ReadonlySet<string>;
  /** The files among them. */
  readonly images: ReadonlySet<string>;
  readonly disks: ReadonlyMap<string, StoredVolume>;
  /** Disks by the path of their image. */
  readonly users: ReadonlyMap<string, readonly StoredVolume[]>;
  /** The volumes that something was made from which still is there. */
  readonly sources: ReadonlySet<string>;
  /** The volumes of PersistentVolumes. */
  readonly named: ReadonlySet<string>;
  /** Attachments by volume. */
  readonly attachments: ReadonlyMap<string, readonly NodeAttachment[]>;
}

/** Makes the look-ups. */
export function auditView(view: Inventory & FileView, { cluster, used }: AuditScope): AuditView {
  const { volumes, files } = view;
  return {
    ...view,
    paths: new Set(files.map(({ path }) => path)),
    images: new Set(files.flatMap(({ path, directory }) => directory ? [] : [path])),
    disks: new Map(volumes.map((stored) => [stored.id, stored])),
    users: Map.groupBy(volumes, ({ imagePath }) => imagePath),
    sources: sourcesOf(view, cluster),
    named: new Set(used?.volumes.map(({ volumeId }) => volumeId)),
    attachments: Map.groupBy(used?.attachments ?? [], ({ volumeId }) => volumeId),
  };
}

function sourcesOf({ volumes, files }: Inventory & FileView, cluster: string): ReadonlySet<string> {
  const name = "/snap-[0-9a-f]{28}[.]([a-z0-9-]{1,40})[.][0-9a-z]{1,8}[.][bn][.]";
  const snapshots = new RegExp(`${name}${cluster}(?=[./]|$)`, "g");
  const sources = new Set(files.flatMap(({ path }) => [...path.matchAll(snapshots)].map(([, id]) => id!)));
  for (const stored of volumes) {
    const ownership = judgeOwnership(stored, cluster);
    const source = ownership.state === "owned" ? ownership.volume.record.source : undefined;
    if (source?.startsWith(ofVolume)) sources.add(source.slice(ofVolume.length));
  }
  return sources;
}

const ofVolume = formatSource({ kind: "volume", id: "" });

/** What is younger is never deleted: a router may still carry out what it was sent so long ago, in milliseconds. */
export const orphanGraceMs = 600_000;

/** Why something of that age is left alone; undefined when it is old enough. A time from the future is no age. */
export function keptForAge(
  sinceSeconds: number | undefined,
  nowMs: number,
  minMs: number,
): string | undefined {
  if (sinceSeconds === undefined) return undefined;
  const ageMs = nowMs - sinceSeconds * 1000;
  if (ageMs >= minMs) return undefined;
  return `it is younger than ${minMs / 60_000} minutes`;
}

/** Whether it may be deleted for its age alone: its age has to be known. */
export function isDue({ kept, sinceSeconds }: AuditFinding, nowMs: number, olderThanMs: number): boolean {
  if (kept !== undefined || sinceSeconds === undefined) return false;
  return nowMs - sinceSeconds * 1000 >= Math.max(olderThanMs, orphanGraceMs);
}

/** What names a finding, so that two looks can be compared. */
export function findingKey({ kind, id, path }: AuditFinding): string {
  return `${kind} ${id} ${path}`;
}
