import type { AuditFinding, AuditScope, ClusterUse } from "./finding.ts";
import type { Inventory, StoredVolume } from "../../model/inventory.ts";
import { isNamedAsOwn, judgeOwnership, type Ownership } from "../ownership.ts";
import { howToWithdraw, isUsedElsewhere } from "../used_elsewhere.ts";

/** The most volumes that a reason names. */
const maxNamed = 5;

/**
 * Why nothing may be deleted for its age alone; undefined when nothing speaks against it. Age proves that a volume is
 * idle, and only a missing PersistentVolume that it is not needed. So the cluster that answers has to be the one that the
 * volumes belong to, the only one, and to know most of them: one that was restored from an old backup does not.
 *
 * @param findings what has no owner
 * @param seen the disks that they were judged by
 */
export function reasonAgainstAge(
  findings: readonly AuditFinding[],
  { volumes }: Pick<Inventory, "volumes">,
  scope: AuditScope,
): string | undefined {
  const { used } = scope;
  // Without a cluster only copies that were never finished have an age.
  if (used === undefined) return undefined;
  const judged = volumes.map((stored) => ({
    stored,
    ownership: judgeOwnership(stored, scope.cluster),
  }));
  const reason = reasonOfOtherCluster(findings, judged, scope, used);
  if (reason !== undefined || !findings.some(hasAge)) return reason;
  return reasonOfOtherMark(judged, used) ?? reasonOfMissing(findings, judged, used);
}

/** Whether a finding is deleted for its age, sooner or later. */
export function hasAge({ kept, sinceSeconds }: AuditFinding): boolean {
  return kept === undefined && sinceSeconds !== undefined;
}

interface Judged {
  readonly stored: StoredVolume;
  readonly ownership: Ownership;
}

/** Volumes that are in use, and that this cluster does not know. */
function reasonOfOtherCluster(
  findings: readonly AuditFinding[],
  judged: readonly Judged[],
  scope: AuditScope,
  used: ClusterUse,
): string | undefined {
  const named = new Set(used.volumes.map(({ volumeId }) => volumeId));
  // Without a finding it may have been made after the cluster answered.
  const found = new Set(findings.map(({ id }) => id));
  const isNamed = (id: string) => named.has(id) || used.others?.has(id) === true || !found.has(id);
  const unknown = judged.filter(({ stored, ownership }) =>
    ownership.state === "owned"
      ? isUsedElsewhere(ownership.volume, isNamed)
      : hasLostRecord(ownership) && stored.exported && !isNamed(stored.id) &&
        isNamedAsOwn(stored, scope.cluster, scope.basePaths)
  );
  if (unknown.length === 0) return undefined;
  const owned = unknown.find(({ ownership }) => ownership.state === "owned");
  const how = owned === undefined
    ? "turn its export off on the router"
    : `run "${howToWithdraw(owned.stored.id)}"`;
  return "another cluster with this cluster's id may use the router, " +
    "because no PersistentVolume names volumes that are in use: " +
    `volumes=${shortList(unknown.map(({ stored }) => stored.id))}; if nothing uses one any more, ${how}`;
}

function hasLostRecord({ state }: Ownership): boolean {
  return state === "damaged" || state === "no-record" || state === "unreadable";
}

/** PersistentVolumes of another cluster's volumes: the wrong kubeconfig, or the wrong cluster id. */
function reasonOfOtherMark(judged: readonly Judged[], { volumes }: ClusterUse): string | undefined {
  const others = new Map(
    judged.flatMap(({ stored, ownership }): [string, string][] =>
      ownership.state === "other-cluster" ? [[stored.id, ownership.cluster]] : []
    ),
  );
  const one = volumes.find(({ volumeId }) => others.has(volumeId));
  return one === undefined
    ? undefined
    : `the cluster that answers has a PersistentVolume of another mark's volume: pv=${one.name} volume=${one.volumeId} ` +
      `mark=${others.get(one.volumeId)}; compare its id with --cluster-id`;
}

/** All volumes without a PersistentVolume count, however young: in time they would all be old. */
function reasonOfMissing(
  findings: readonly AuditFinding[],
  judged: readonly Judged[],
  used: ClusterUse,
): string | undefined {
  if (used.volumes.length === 0) {
    return "the cluster has no PersistentVolume of this driver: it may be another cluster, or be restored from an old backup";
  }
  const own = judged.filter(({ ownership }) => ownership.state === "owned").length;
  const missing =
    findings.filter(({ kind, id }) => kind === "disk-without-pv" && !used.others?.has(id)).length;
  return missing * 2 <= own
    ? undefined
    : "more than half of its volumes have no PersistentVolume, as in another cluster, or one restored from an old " +
      `backup: without=${missing} volumes=${own}`;
}

function shortList(ids: readonly string[]): string {
  const more = ids.length - maxNamed;
  return ids.slice(0, maxNamed).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
