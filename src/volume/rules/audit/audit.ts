import { type AuditKind, auditKinds } from "../../model/audit_kinds.ts";
import {
  type AuditFinding,
  type AuditScope,
  type AuditView,
  auditView,
  keptForAge,
  orphanGraceMs,
  whySubvolumeKept,
} from "./finding.ts";
import { orphanFiles } from "./files.ts";
import type { ClusterVolume, NodeAttachment, UnknownVolumeAttachment } from "../../ports/cluster_view.ts";
import {
  describeLegacySnapshot,
  isLegacySnapshot,
  legacySnapshotTime,
  whyLegacySnapshotKept,
} from "../../model/snapshots/legacy_snapshots.ts";
import { isVolumeId, poolOf } from "../../model/ids/ids.ts";
import { isImported } from "../../model/sources.ts";
import { filePrefixOf, isImageOf } from "../../model/image_names.ts";
import { nodeIdsOf, type OwnedVolume } from "../../model/record.ts";
import { whyPoolUnreadable } from "../absence.ts";
import { judgeOwnership } from "../ownership.ts";
import type { FileView, Inventory, StoredVolume } from "../../model/inventory.ts";
import { isExportedAsRecorded } from "../publish.ts";
import { adviceOnUses } from "../router_uses.ts";

/**
 * Everything on the router that lacks its owner, ordered by kind and id. Healthy objects are left out.
 *
 * @param seen all disks, the mounted pools, and the files of this cluster
 */
export function judgeAudit(seen: Inventory & FileView, scope: AuditScope): AuditFinding[] {
  const view = auditView(seen, scope);
  const found = [
    ...judgePools(seen, scope),
    ...view.volumes.flatMap((stored) => judgeDisk(stored, view, scope)),
    // What seems to have no disk may have one that is not shown.
    ...orphanFiles(view, scope).filter(({ path }) => whyPoolUnreadable(seen, path) === undefined),
    ...judgeUse(view, scope),
  ];
  const order = Object.keys(auditKinds);
  return found.toSorted((a, b) =>
    order.indexOf(a.kind) - order.indexOf(b.kind) || compare(a.id, b.id) || compare(a.path, b.path)
  );
}

/** Findings for pools that can hold volumes and whose rows cannot be read. */
function judgePools(seen: Inventory, { basePaths }: AuditScope): AuditFinding[] {
  return basePaths.flatMap((path): AuditFinding[] => {
    const reason = whyPoolUnreadable(seen, path);
    if (reason === undefined) return [];
    const found = `the router's row of its pool cannot be read: ${reason}`;
    const kept = "nothing on it counts as gone";
    return [{ kind: "disk-unreadable", id: poolOf(path), path, found, sinceSeconds: undefined, kept }];
  });
}

function judgeDisk(stored: StoredVolume, view: AuditView, scope: AuditScope): AuditFinding[] {
  const { id, imagePath } = stored;
  const base = { id, path: imagePath, sinceSeconds: undefined };
  const ownership = judgeOwnership(stored, scope.cluster);
  switch (ownership.state) {
    case "owned":
      return judgeOwned(ownership.volume, view, scope);
    case "damaged":
      return [{
        ...base,
        kind: "record-damaged",
        found: `the record in the disk's comment is damaged: ${ownership.reason}`,
        kept: "its owner is not known",
      }];
    case "unreadable":
      return [{ ...base, kind: "disk-unreadable", found: ownership.reason, kept: "it counts as in use" }];
    case "other-cluster":
      return [{
        ...base,
        kind: "other-cluster",
        found: `a volume of another cluster: cluster=${ownership.cluster}`,
        kept: "it is another cluster's",
      }];
    case "earlier-driver":
      return [{
        ...base,
        kind: "earlier-driver",
        found: `a volume of the legacy driver, not taken over: exported=${stored.exported}`,
        kept: "the legacy driver made it",
      }];
    case "no-record":
      return [
        isLegacySnapshot(stored, scope.basePaths) ? judgeLegacySnapshot(stored, view, scope) : {
          ...base,
          kind: "no-record",
          found: "a disk that carries no record of this driver",
          kept: "this driver did not make it",
        },
      ];
  }
}

function judgeLegacySnapshot(
  stored: StoredVolume,
  { users }: AuditView,
  { nowMs }: AuditScope,
): AuditFinding {
  const { id, imagePath: path } = stored;
  const sharers = (users.get(path) ?? []).filter((other) => other.id !== id);
  return {
    kind: "earlier-snapshot",
    id,
    path,
    found: describeLegacySnapshot(stored),
    sinceSeconds: legacySnapshotTime(id, nowMs),
    kept: whyLegacySnapshotKept(sharers),
  };
}

function judgeOwned(volume: OwnedVolume, view: AuditView, scope: AuditScope): AuditFinding[] {
  const { stored, record } = volume;
  const { id, imagePath: path } = stored;
  const nodes = nodeIdsOf(record.holders).join(", ");
  const findings: AuditFinding[] = [];
  const add = (kind: AuditKind, found: string, kept: string, sinceSeconds?: number) =>
    findings.push({ kind, id, path, found, kept, sinceSeconds });
  const mounted = view.pools.some((pool) => pool.mountPoint === poolOf(path));
  const hasImage = view.images.has(path);
  if (mounted && (isImported(record) || isOwnImage(stored, scope)) && !hasImage) {
    add("disk-without-image", "the disk exists, but its image is gone", "find the data by hand");
  }
  if (record.holders.length === 0 && stored.exported) {
    add(
      "export-without-holder",
      `exported, but no node holds it: nqn=${stored.exportNqn}`,
      "it is exported",
    );
  }
  if (record.holders.length > 0 && stored.exported && !isExportedAsRecorded(volume)) {
    const found = `exported under another NQN than its nodes know: nqn=${stored.exportNqn} node=${nodes}`;
    add("export-differs", found, "it is published");
  }
  if (stored.routerUses !== undefined) {
    const found = `the router itself uses the disk: ${stored.routerUses.join(", ")}`;
    add(
      "used-by-router",
      found,
      `the driver does not publish it before you ${adviceOnUses(id, stored.routerUses)}`,
    );
  }
  return [...findings, ...judgeNeed(volume, view, scope)];
}

/** Judges whether the cluster needs a disk, and knows its holders. */
function judgeNeed(volume: OwnedVolume, view: AuditView, scope: AuditScope): AuditFinding[] {
  const { used } = scope;
  const { stored: { id, imagePath: path, comment }, record: { holders } } = volume;
  if (used === undefined) return [];
  const attachments = view.attachments.get(id) ?? [];
  const unwanted = holders.filter(({ nodeId }) => !attachments.some((one) => one.nodeId === nodeId));
  const findings = unwanted.map(({ nodeId, sinceSeconds }): AuditFinding => ({
    kind: "holder-without-attachment",
    id,
    path,
    found: `a node holds it that no VolumeAttachment names: node=${nodeId}`,
    sinceSeconds,
    kept: "it is published",
  }));
  if (!isVolumeId(id) || view.named.has(id)) return findings;
  const sinceSeconds = idleSince(volume, scope);
  return [...findings, {
    kind: "disk-without-pv",
    id,
    path,
    found: "no PersistentVolume names it: deleted by hand, or kept by the reclaim policy Retain",
    sinceSeconds,
    kept: whyKept(volume, view, scope, attachments) ??
      keptForAge(sinceSeconds, scope.nowMs, orphanGraceMs),
    comment,
  }];
}

/** When its last holder left. */
function idleSince({ record }: OwnedVolume, { nowMs }: AuditScope): number | undefined {
  const seconds = record.withdrawnAtSeconds;
  if (record.holders.length > 0 || seconds === undefined) return undefined;
  // A time that cannot be read lies in the far future, and counts as none.
  return seconds * 1000 > nowMs + orphanGraceMs ? undefined : seconds;
}

function whyKept(
  { stored, record }: OwnedVolume,
  view: AuditView,
  scope: AuditScope,
  attachments: readonly NodeAttachment[],
): string | undefined {
  if (isImported(record)) {
    return 'it was imported and holds data of its owner: "rds-csi release" gives it back';
  }
  if (record.newerFields !== undefined) return "a newer version of this driver wrote its record";
  if (record.holders.length > 0) return "it is published";
  if (stored.exported) return "it is exported";
  if (stored.routerUses !== undefined) return "the router itself uses the disk";
  if (attachments.length > 0) return "a VolumeAttachment names it";
  if (scope.used?.others?.has(stored.id)) return "a PersistentVolume of a driver of another name names it";
  if (!isOwnImage(stored, scope)) return "its disk uses a file of another name or folder";
  const sharer = view.users.get(stored.imagePath)?.find((other) => other.id !== stored.id);
  if (sharer !== undefined) return `another disk uses its image: disk=${sharer.id}`;
  if (view.sources.has(stored.id)) return "snapshots or volumes were made from it";
  if (scope.isCopying(stored.id)) return "a copy of it is being made";
  if (whyPoolUnreadable(view, stored.imagePath) !== undefined) return "the row of its pool cannot be read";
  return whySubvolumeKept(view, stored.imagePath);
}

function isOwnImage({ id, imagePath }: StoredVolume, { cluster, basePaths }: AuditScope): boolean {
  return isImageOf(imagePath, filePrefixOf(id, cluster)) &&
    basePaths.some((base) => imagePath.startsWith(`${base}/${filePrefixOf(id, cluster)}`));
}

/** Findings for objects that the cluster names and the router does not have. */
function judgeUse(view: AuditView, { used, cluster, basePaths }: AuditScope): AuditFinding[] {
  if (used === undefined) return [];
  const { disks } = view;
  const isHidden = ({ attributes: { volumePath } }: ClusterVolume) =>
    (volumePath === undefined ? basePaths : [volumePath]).some((path) => whyPoolUnreadable(view, path));
  const missing = used.volumes.filter((volume) => !disks.has(volume.volumeId) && !isHidden(volume));
  const lost = missing.map((volume): AuditFinding => ({
    kind: "pv-without-disk",
    id: volume.volumeId,
    path: "",
    found: `a PersistentVolume names it and the router has no disk of it: pv=${volume.name}`,
    sinceSeconds: undefined,
    kept: "there is nothing to delete",
  }));
  const unheld = used.attachments.flatMap(({ volumeId, nodeId, attached, sinceSeconds }): AuditFinding[] => {
    const stored = disks.get(volumeId);
    const ownership = stored === undefined ? undefined : judgeOwnership(stored, cluster);
    // Without the node's id, nothing can be said about the attachment.
    if (!attached || nodeId === "" || ownership?.state !== "owned") return [];
    if (ownership.volume.record.holders.some((holder) => holder.nodeId === nodeId)) return [];
    const found = `a VolumeAttachment says that a node has it, and the router does not: node=${nodeId}`;
    const kept = "there is nothing to delete";
    return [{ kind: "attachment-without-holder", id: volumeId, path: "", found, sinceSeconds, kept }];
  });
  return [...lost, ...unheld, ...used.orphans.map(judgeOrphan)];
}

function judgeOrphan({ name, volumeName, nodeName, sinceSeconds }: UnknownVolumeAttachment): AuditFinding {
  return {
    kind: "attachment-without-pv",
    id: volumeName,
    path: "",
    found: `a VolumeAttachment names a PersistentVolume that is gone: attachment=${name} node=${nodeName}`,
    sinceSeconds,
    kept: "there is nothing to delete on the router: the attacher or an administrator removes it",
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
