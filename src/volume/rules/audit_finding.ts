import { formatSource } from "../model/sources.ts";
import type { AuditKind } from "../model/audit_kinds.ts";
import type { ClusterVolume, NodeAttachment, UnknownVolumeAttachment } from "../ports/cluster_view.ts";
import { judgeOwnership } from "./ownership.ts";
import type { FileView, Inventory, StoredVolume } from "../model/inventory.ts";

/** One object that lacks its owner on the router, or its counterpart there. */
export interface AuditFinding {
  readonly kind: AuditKind;
  /** The volume or the snapshot; for an attachment whose PersistentVolume is gone, that PersistentVolume's name. */
  readonly id: string;
  /** The image, the copy or the subvolume; "" where there is none. */
  readonly path: string;
  /** For people. */
  readonly found: string;
  /**
   * Since when it has been so, according to the record, in seconds since the Unix epoch; undefined when that is
   * unknown.
   */
  readonly sinceSeconds: number | undefined;
  /** Why it is never deleted; undefined when it may be. */
  readonly kept: string | undefined;
  /** The comment on which the finding is based, for a disk that may be deleted. */
  readonly comment?: string;
}

/** The scope of an audit. */
export interface AuditScope {
  /** Hash of this cluster's id. */
  readonly cluster: string;
  readonly basePaths: readonly string[];
  /** What the cluster uses; undefined when it was not asked. */
  readonly used: ClusterUse | undefined;
  /** Whether a person vouches that what no cluster was asked about is unused. */
  readonly vouched: boolean;
  readonly nowMs: number;
  /** Whether this very process is copying that volume or snapshot. */
  readonly isCopying: (id: string) => boolean;
}

/** What the cluster uses, according to its objects. */
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

/**
 * Younger objects are never deleted, in milliseconds: a router may still run a command that it was sent this long ago.
 */
export const orphanGraceMs = 600_000;

/** Why an object of that age is left alone; undefined when it is old enough. A time in the future counts as unknown. */
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

/** Whether it may be deleted by age: its age has to be known. */
export function isDue({ kept, sinceSeconds }: AuditFinding, nowMs: number, olderThanMs: number): boolean {
  if (kept !== undefined || sinceSeconds === undefined) return false;
  return nowMs - sinceSeconds * 1000 >= Math.max(olderThanMs, orphanGraceMs);
}

/** The key of a finding, to compare two audits. */
export function findingKey({ kind, id, path }: AuditFinding): string {
  return `${kind} ${id} ${path}`;
}

/** Whether a volume or snapshot that was made from that volume still exists. */
export function isSource(id: string, view: Inventory & FileView, { cluster }: AuditScope): boolean {
  const ofSnapshots = new RegExp(`/snap-[0-9a-f]{28}[.]${id}[.][0-9a-z]{1,8}[.][bn][.]${cluster}(?:[./]|$)`);
  const isParent = (stored: StoredVolume) => {
    const ownership = judgeOwnership(stored, cluster);
    return ownership.state === "owned" &&
      ownership.volume.record.source === formatSource({ kind: "volume", id });
  };
  return view.files.some(({ path }) => ofSnapshots.test(path)) || view.volumes.some(isParent);
}
