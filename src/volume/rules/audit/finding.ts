import { formatSource } from "../../model/sources.ts";
import type { AuditKind } from "../../model/audit_kinds.ts";
import type { ClusterVolume, NodeAttachment, UnknownVolumeAttachment } from "../../ports/cluster_view.ts";
import { judgeOwnership } from "../ownership.ts";
import type { FileView, Inventory, StoredFile, StoredVolume } from "../../model/inventory.ts";
import { contentLetterForm } from "../../model/snapshots/snapshots.ts";

/** One object that lacks its owner on the router, or its counterpart there. */
export interface AuditFinding {
  readonly kind: AuditKind;
  /**
   * The volume or the snapshot; for an attachment whose PersistentVolume is gone, that PersistentVolume's name; for a pool whose
   * row cannot be read, the pool's.
   */
  readonly id: string;
  /** The image, the copy, the subvolume, or the pool's base folder; "" where there is none. */
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

/** One view of the router, with the indexes that judging thousands of disks and files needs. */
export interface AuditView extends Inventory, FileView {
  /** All files and folders. */
  readonly paths: ReadonlySet<string>;
  /** The files among them. */
  readonly images: ReadonlySet<string>;
  readonly disks: ReadonlyMap<string, StoredVolume>;
  /** Disks by the path of their image. */
  readonly users: ReadonlyMap<string, readonly StoredVolume[]>;
  /** By subvolume of a volume, a file in it that is not the volume's image. */
  readonly others: ReadonlyMap<string, string>;
  /** The volumes from which an existing volume or snapshot was made. */
  readonly sources: ReadonlySet<string>;
  /** The volumes of PersistentVolumes. */
  readonly named: ReadonlySet<string>;
  /** Attachments by volume. */
  readonly attachments: ReadonlyMap<string, readonly NodeAttachment[]>;
}

/** Builds the indexes. */
export function auditView(view: Inventory & FileView, { cluster, used }: AuditScope): AuditView {
  const { volumes, files } = view;
  return {
    ...view,
    paths: new Set(files.map(({ path }) => path)),
    images: new Set(files.flatMap(({ path, directory }) => directory ? [] : [path])),
    disks: new Map(volumes.map((stored) => [stored.id, stored])),
    users: Map.groupBy(volumes, ({ imagePath }) => imagePath),
    others: otherFiles(files, cluster),
    sources: sourcesOf(view, cluster),
    named: new Set(used?.volumes.map(({ volumeId }) => volumeId)),
    attachments: Map.groupBy(used?.attachments ?? [], ({ volumeId }) => volumeId),
  };
}

function otherFiles(files: readonly StoredFile[], cluster: string): ReadonlyMap<string, string> {
  const form = new RegExp(`^(.*/[a-z0-9-]+[.]${cluster})/(?!disk[.]img$)`);
  return new Map(files.flatMap(({ path, directory }): [string, string][] => {
    const folder = directory ? undefined : form.exec(path)?.[1];
    return folder === undefined ? [] : [[folder, path]];
  }));
}

/**
 * Why the subvolume at this path, or of the image at it, is kept: a file that a person put into it would be removed with it.
 */
export function whySubvolumeKept({ others }: AuditView, path: string): string | undefined {
  const other = others.get(path.replace(/[/]disk[.]img$/, ""));
  return other === undefined
    ? undefined
    : `another file is in its subvolume: path=${other}; move it away if it is needed, else remove it`;
}

function sourcesOf({ volumes, files }: Inventory & FileView, cluster: string): ReadonlySet<string> {
  const name = `/snap-[0-9a-f]{28}[.]([a-z0-9-]{1,40})[.][0-9a-z]{1,8}[.]${contentLetterForm}[.]`;
  const snapshots = new RegExp(`${name}${cluster}(?=[./]|$)`, "g");
  const sources = new Set(files.flatMap(({ path }) => [...path.matchAll(snapshots)].map(([, id]) => id!)));
  for (const stored of volumes) {
    const ownership = judgeOwnership(stored, cluster);
    const source = ownership.state === "owned"
      ? ownership.volume.record.source
      : ownership.state === "unreadable"
      ? ownership.source
      : undefined;
    if (source?.startsWith(ofVolume)) sources.add(source.slice(ofVolume.length));
  }
  return sources;
}

const ofVolume = formatSource({ kind: "volume", id: "" });

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
