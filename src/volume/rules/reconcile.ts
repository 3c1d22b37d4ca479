import type { ClusterAttachment } from "../ports/cluster_view.ts";
import { type Epoch, formatEpoch, parseEpoch } from "../model/epoch.ts";
import type { Holder, OwnedVolume } from "../model/record.ts";
import { isExportedAsRecorded } from "./publish.ts";

/** What has to be done about a volume that the cluster and the router see differently. */
export type ReconcileStep =
  /** Nodes hold it, and it is not exported as they know it: turn the export on again, under the same NQN. */
  | { readonly action: "restore"; readonly volume: OwnedVolume }
  /** It is exported or held, and wanted nowhere. */
  | { readonly action: "withdraw"; readonly volume: OwnedVolume }
  /** The cluster knows of a later epoch than the router: whatever is exported, it is not what a node uses. */
  | { readonly action: "older-epoch"; readonly volume: OwnedVolume; readonly known: number };

/** What a pass concludes. */
export interface Reconciliation {
  readonly steps: readonly ReconcileStep[];
  /** Volumes that are unwanted for long enough, and for which this pass does nothing, with the reason. */
  readonly heldBack: readonly OwnedVolume[];
  readonly heldBackReason: string | undefined;
  /** Since when each unwanted volume is, for the next pass. */
  readonly unwantedSinceMs: ReadonlyMap<string, number>;
}

/** How careful a pass is. */
export interface ReconcileRules {
  /** How long a volume has to be unwanted, and held, before it is withdrawn, in milliseconds. */
  readonly graceMs: number;
  /** The most that are withdrawn in a pass. */
  readonly maxWithdrawals: number;
}

/** What a pass looks at. */
export interface ReconcileView {
  /** LoadedVolume at before the attachments: what is held by then and wanted by nobody later has been let go. */
  readonly volumes: readonly OwnedVolume[];
  readonly attachments: readonly ClusterAttachment[];
  readonly unwantedSinceMs: ReadonlyMap<string, number>;
  /** `Clock.now()`, for the times in records. */
  readonly nowMs: number;
  /** `Clock.monotonicMs()`, for how long something has been unwanted. */
  readonly monotonicMs: number;
  /** Whether the cluster has an object of a volume. */
  isNamed(volumeId: string): boolean;
  /** Whether the router shows all it has. */
  readonly settled: boolean;
}

/**
 * Compares the router with the cluster. It publishes nothing that is not held, and withdraws nothing on a doubt: an
 * attachment that cannot be told, a router that has just booted, or most volumes unwanted at once, as after a restored
 * backup of the cluster, are doubts. So is a volume that the cluster has no object of: it may be in use in another one that
 * was given the same `--cluster-id`. A volume whose record a newer version wrote is left alone.
 */
export function reconcile(view: ReconcileView, rules: ReconcileRules): Reconciliation {
  const readable = view.volumes.filter(({ record }) => record.newerFields === undefined);
  const inUse = readable.filter(isInUse);
  const byVolume = Map.groupBy(view.attachments, ({ volumeId }) => volumeId);
  const steps: ReconcileStep[] = [];
  const unwanted: OwnedVolume[] = [];
  for (const volume of readable) {
    const attachments = byVolume.get(volume.stored.id) ?? [];
    const known = latestEpoch(attachments);
    if (known > (volume.record.epoch?.counter ?? 0)) steps.push({ action: "older-epoch", volume, known });
    else if (!isInUse(volume)) continue;
    else if (!isWanted(volume, attachments)) unwanted.push(volume);
    else if (isToBeRestored(volume, attachments)) steps.push({ action: "restore", volume });
  }
  const unwantedSinceMs = new Map(
    unwanted.map(({ stored: { id } }) => [id, view.unwantedSinceMs.get(id) ?? view.monotonicMs]),
  );
  const due = unwanted.filter((volume) => isDue(volume, unwantedSinceMs, view, rules))
    .toSorted((a, b) => unwantedSinceMs.get(a.stored.id)! - unwantedSinceMs.get(b.stored.id)!);
  const doubt = doubtOf(view, due.length, inUse.length, rules);
  const named = due.filter(({ stored }) => view.isNamed(stored.id));
  const taken = doubt === undefined ? named.slice(0, rules.maxWithdrawals) : [];
  const heldBack = doubt === undefined ? due.filter(({ stored }) => !view.isNamed(stored.id)) : due;
  return {
    steps: [...steps, ...taken.map((volume) => ({ action: "withdraw" as const, volume }))],
    heldBack,
    heldBackReason: heldBack.length === 0 ? undefined : doubt ?? unnamed,
    unwantedSinceMs,
  };
}

function isInUse({ stored, record }: OwnedVolume): boolean {
  return stored.exported || record.holders.length > 0;
}

const unnamed =
  "no PersistentVolume of this cluster names them: another cluster may use them; see rds-csi audit";

/** Whether nobody wants a volume as it is held, by attachments that were read just now. */
export function isStillUnwanted(volume: OwnedVolume, attachments: readonly ClusterAttachment[]): boolean {
  if (attachments.some(({ volumeId }) => volumeId === undefined)) return false;
  return !isWanted(volume, attachments.filter(({ volumeId }) => volumeId === volume.stored.id));
}

/**
 * Whether the cluster wants a volume where it is. An attachment that is not done, of a node that does not hold it, only waits:
 * for a holder that nobody will ever take away, as when the router has forgotten that it did, it would wait for ever. One of an
 * earlier epoch, as after a restore of etcd, proves of such a node that it is not who holds it now.
 */
function isWanted({ record }: OwnedVolume, attachments: readonly ClusterAttachment[]): boolean {
  const { holders, epoch } = record;
  if (holders.length === 0 || epoch === undefined) return attachments.length > 0;
  return attachments.some((one) =>
    isOfHolder(one, holders) || one.publishContext["epoch"] === formatEpoch(epoch) ||
    (one.attached && !isOfEarlierEpoch(one, epoch))
  );
}

/** A node's id may be another than its name. */
function isOfHolder({ nodeName, nodeId }: ClusterAttachment, holders: readonly Holder[]): boolean {
  return holders.some((holder) => holder.nodeId === nodeName || holder.nodeId === nodeId);
}

function isOfEarlierEpoch({ publishContext }: ClusterAttachment, { counter }: Epoch): boolean {
  const known = parseEpoch(publishContext["epoch"] ?? "");
  return known !== undefined && known.counter < counter;
}

/** The latest epoch that the cluster knows of a volume; 0 when it knows none. */
export function latestEpoch(attachments: readonly ClusterAttachment[]): number {
  return Math.max(0, ...attachments.map(({ publishContext }) => counterOf(publishContext)));
}

function counterOf(publishContext: Readonly<Record<string, string>>): number {
  return parseEpoch(publishContext["epoch"] ?? "")?.counter ?? 0;
}

/** Whether a node that really uses the volume has lost its export. */
function isToBeRestored(volume: OwnedVolume, attachments: readonly ClusterAttachment[]): boolean {
  const { record } = volume;
  if (record.holders.length === 0 || isExportedAsRecorded(volume)) return false;
  return attachments.some((one) =>
    one.attached && !one.deleting &&
    (isOfHolder(one, record.holders) || counterOf(one.publishContext) === record.epoch?.counter)
  );
}

function isDue(
  { stored, record }: OwnedVolume,
  unwantedSinceMs: ReadonlyMap<string, number>,
  view: ReconcileView,
  { graceMs }: ReconcileRules,
): boolean {
  const youngestMs = Math.max(0, ...record.holders.map(({ sinceSeconds }) => sinceSeconds * 1000));
  return view.monotonicMs - unwantedSinceMs.get(stored.id)! >= graceMs && view.nowMs - youngestMs >= graceMs;
}

function doubtOf(
  { attachments, settled }: ReconcileView,
  due: number,
  inUse: number,
  { maxWithdrawals }: ReconcileRules,
): string | undefined {
  if (attachments.some(({ volumeId }) => volumeId === undefined)) {
    return "the volume of some VolumeAttachments is not known";
  }
  if (!settled) return "the router booted a moment ago";
  if (due > maxWithdrawals && due * 2 > inUse) {
    return "most volumes in use have no VolumeAttachment: the cluster may be restored from an old backup";
  }
  return undefined;
}
