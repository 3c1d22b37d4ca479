import type { ClusterAttachment } from "../ports/cluster_view.ts";
import { type Epoch, formatEpoch } from "../model/epoch.ts";
import { isLegacyId } from "../model/ids/ids.ts";
import { publishedCounter } from "../model/parse_context.ts";
import type { Holder, OwnedVolume } from "../model/record.ts";
import { usesOwnImage } from "../model/sources.ts";
import { exportedCounter, isExportedAsRecorded } from "./publish.ts";
import { isInUse, isUsedElsewhere } from "./used_elsewhere.ts";

/** A step for a volume on which the cluster and the router differ. */
export type ReconcileStep =
  /** Nodes hold it, and its export is off or different: turn it on again, under the same NQN. */
  | { readonly action: "restore"; readonly volume: OwnedVolume }
  /** It is exported or held, and wanted nowhere. */
  | { readonly action: "withdraw"; readonly volume: OwnedVolume }
  /** Several nodes hold it, and it is wanted, but not on this one: the others go on. */
  | { readonly action: "leave"; readonly volume: OwnedVolume; readonly nodeId: string }
  /** The cluster knows of a later epoch than the router has: nodes do not use what the router exports. */
  | { readonly action: "older-epoch"; readonly volume: OwnedVolume; readonly known: number };

/** The result of one round. */
export interface Reconciliation {
  readonly steps: readonly ReconcileStep[];
  /** What has been unwanted for long enough and is still kept, with the reason. */
  readonly heldBack: readonly Unwanted[];
  readonly heldBackReason: string | undefined;
  /** Those of them that are no doubt if their nodes have given them up: only many at once are held back. */
  readonly mayBeGivenUp: readonly Unwanted[];
  /** Since when each volume, or one holder of it, has been unwanted, for the next round. */
  readonly unwantedSinceMs: ReadonlyMap<string, number>;
}

/** A volume that nothing wants, or one of its holders that nothing wants it on. */
export interface Unwanted {
  readonly volume: OwnedVolume;
  /** Those that are to be taken away. */
  readonly holders: readonly Holder[];
  /** Undefined for all of them. */
  readonly nodeId?: string;
}

/** The limits of a round. */
export interface ReconcileRules {
  /** How long a volume has to be unwanted, and held, before it is withdrawn or taken from a node, in milliseconds. */
  readonly graceMs: number;
  /** The maximum number of withdrawals in a round. */
  readonly maxWithdrawals: number;
}

/** The input of a round. */
export interface ReconcileView {
  /** Read before the attachments: a volume that was held then and is wanted nowhere later has been given up. */
  readonly volumes: readonly OwnedVolume[];
  readonly attachments: readonly ClusterAttachment[];
  readonly unwantedSinceMs: ReadonlyMap<string, number>;
  /** `Clock.now()`, for the times in records. */
  readonly nowMs: number;
  /** `Clock.monotonicMs()`, for how long something has been unwanted. */
  readonly monotonicMs: number;
  /** Whether the cluster has an object of a volume, and none of a driver of another name. */
  isNamed(volumeId: string): boolean;
  /** Whether the kubelets of its nodes say that they do not use it; false where none was asked. */
  isGivenUp(unwanted: Unwanted): boolean;
  /** Whether the router shows everything it has. */
  readonly settled: boolean;
}

/**
 * Compares the router with the cluster. It publishes no volume that is not held, and withdraws none on a doubt. Doubts
 * are an attachment of an unknown volume, a router that has just booted, or most volumes unwanted at once, as after a
 * restored backup of the cluster. A volume without an object in the cluster is a doubt too: another cluster with the
 * same `--cluster-id` may use it. So is one that a driver of another name has an object of. A volume whose record a
 * newer version wrote, or whose disk uses the image of another volume, is left alone.
 *
 * No doubt, however many they are, are volumes that another node waits for and that their own nodes have given up: the
 * router has forgotten their detaches.
 */
export function reconcile(view: ReconcileView, rules: ReconcileRules): Reconciliation {
  // By a person's hand a disk may be in the slot of another volume, whose attachments say nothing about it.
  const readable = view.volumes.filter((volume) =>
    volume.record.newerFields === undefined && usesOwnImage(volume, volume.record.cluster)
  );
  const inUse = readable.filter(isInUse);
  const byVolume = Map.groupBy(view.attachments, ({ volumeId }) => volumeId);
  const steps: ReconcileStep[] = [];
  const unwanted: Unwanted[] = [];
  for (const volume of readable) {
    const attachments = byVolume.get(volume.stored.id) ?? [];
    const known = latestEpoch(attachments);
    const isLost = isToBeRestored(volume, attachments);
    // A restore gives the export its recorded name back.
    const isOlder = known > (isLost ? recordedCounter(volume) : servedCounter(volume));
    if (isOlder) steps.push({ action: "older-epoch", volume, known });
    else if (!isInUse(volume)) continue;
    else if (!isWanted(volume, attachments)) unwanted.push({ volume, holders: volume.record.holders });
    else {
      if (isLost) steps.push({ action: "restore", volume });
      for (const holder of unwantedHolders(volume, attachments)) {
        unwanted.push({ volume, holders: [holder], nodeId: holder.nodeId });
      }
    }
  }
  const unwantedSinceMs = new Map(
    unwanted.map(keyOf).map((key) => [key, view.unwantedSinceMs.get(key) ?? view.monotonicMs]),
  );
  const due = unwanted.filter((one) => isDue(one, unwantedSinceMs, view, rules))
    .toSorted((a, b) => unwantedSinceMs.get(keyOf(a))! - unwantedSinceMs.get(keyOf(b))!);
  const named = due.filter(({ volume }) => !isUsedElsewhere(volume, view.isNamed));
  const awaited = named.filter((one) => isAwaited(one, byVolume.get(one.volume.stored.id) ?? []));
  const givenUp = new Set(awaited.filter(view.isGivenUp));
  const doubt = doubtOf(view);
  const tooMany = areTooMany(due.filter((one) => !givenUp.has(one)), inUse.length - countOf(givenUp), rules);
  const certain = new Set(doubt !== undefined ? [] : tooMany ? givenUp : named);
  const heldBack = due.filter((one) => !certain.has(one));
  return {
    steps: [...steps, ...[...certain].slice(0, rules.maxWithdrawals).map(stepOf)],
    heldBack,
    heldBackReason: heldBack.length === 0 ? undefined : doubt ?? (tooMany ? tooManyUnwanted : unnamed),
    mayBeGivenUp: doubt === undefined && tooMany ? awaited.filter((one) => !givenUp.has(one)) : [],
    unwantedSinceMs,
  };
}

/** The key of one that is unwanted, to recognise it in another round. */
export function keyOf({ volume: { stored: { id } }, nodeId }: Unwanted): string {
  return nodeId === undefined ? id : `${id} ${nodeId}`;
}

function stepOf({ volume, nodeId }: Unwanted): ReconcileStep {
  return nodeId === undefined ? { action: "withdraw", volume } : { action: "leave", volume, nodeId };
}

/** Whether another node waits for it, which is known not to be one of its holders. */
function isAwaited({ volume }: Unwanted, attachments: readonly ClusterAttachment[]): boolean {
  return attachments.some((one) =>
    !one.attached && !one.deleting && one.nodeId !== undefined && !isOfHolder(one, volume.record.holders)
  );
}

const tooManyUnwanted =
  "more than half of the volumes in use are not wanted where they are: the cluster may be " +
  "restored from an old backup, or its router may have lost detaches";

const unnamed =
  "no PersistentVolume of this driver alone names them: another cluster, or a driver of another name, may use them; " +
  "see rds-csi audit";

/** Whether nothing wants a volume as it is held, by attachments that were just read. */
export function isStillUnwanted(volume: OwnedVolume, attachments: readonly ClusterAttachment[]): boolean {
  if (attachments.some(({ volumeId }) => volumeId === undefined)) return false;
  return !isWanted(volume, attachments.filter(({ volumeId }) => volumeId === volume.stored.id));
}

/** Whether nothing wants a volume on that one of its holders, by attachments that were just read. */
export function isStillUnwantedOn(
  volume: OwnedVolume,
  nodeId: string,
  attachments: readonly ClusterAttachment[],
): boolean {
  if (attachments.some(({ volumeId }) => volumeId === undefined)) return false;
  const own = attachments.filter(({ volumeId }) => volumeId === volume.stored.id);
  return unwantedHolders(volume, own).some((holder) => holder.nodeId === nodeId);
}

/**
 * Those of several holders that no attachment names, such as a node whose removal the router forgot. None as long as an
 * attachment may be of any of them, because the id of its node is not recorded yet.
 */
function unwantedHolders(
  { record: { holders } }: OwnedVolume,
  attachments: readonly ClusterAttachment[],
): readonly Holder[] {
  const isClear = attachments.every((one) => one.nodeId !== undefined || isOfHolder(one, holders));
  if (holders.length < 2 || !isClear) return [];
  const unnamed = holders.filter((holder) => !attachments.some((one) => isOfHolder(one, [holder])));
  // With none left the whole volume is unwanted, which is for others to say.
  return unnamed.length < holders.length ? unnamed : [];
}

/**
 * Whether the cluster wants a volume where it is. An incomplete attachment of another node than the holders does not
 * count: it only waits for them, and would wait forever for a holder that nothing removes, for example because the
 * router forgot the removal. A complete attachment of another node does not count either when its epoch is earlier, as
 * after a restore of etcd: that node does not use the volume now.
 */
function isWanted({ record }: OwnedVolume, attachments: readonly ClusterAttachment[]): boolean {
  const { holders, epoch } = record;
  if (holders.length === 0 || epoch === undefined) return attachments.length > 0;
  return attachments.some((one) =>
    isOfHolder(one, holders) || isOfEpoch(one, epoch) ||
    (one.attached && !isOfEarlierEpoch(one, epoch))
  );
}

/** A node's id may differ from its name. */
function isOfHolder({ nodeName, nodeId }: ClusterAttachment, holders: readonly Holder[]): boolean {
  return holders.some((holder) => holder.nodeId === nodeName || holder.nodeId === nodeId);
}

/** Whether the attachment is of exactly this epoch. */
export function isOfEpoch({ published }: ClusterAttachment, epoch: Epoch): boolean {
  return published.epoch !== undefined && formatEpoch(published.epoch) === formatEpoch(epoch);
}

function isOfEarlierEpoch({ published }: ClusterAttachment, { counter }: Epoch): boolean {
  return published.epoch !== undefined && published.epoch.counter < counter;
}

/** The latest epoch of a volume that the cluster knows; 0 when it knows none. */
export function latestEpoch(attachments: readonly ClusterAttachment[]): number {
  return Math.max(0, ...attachments.map(({ published }) => publishedCounter(published)));
}

/**
 * The counter of the epoch that nodes can reach: the record's, or an earlier one whose name the export still has when a person
 * turns it on. The legacy driver's name comes before all of them.
 */
export function servedCounter(volume: OwnedVolume): number {
  const { id, exported, exportNqn } = volume.stored;
  if (exported && isLegacyId(id) && exportNqn.endsWith(`:${id}`)) return 0;
  const [recorded, named] = [recordedCounter(volume), exportedCounter(volume)];
  return volume.stored.exported && named > 0 ? Math.min(recorded, named) : recorded;
}

function recordedCounter({ record }: OwnedVolume): number {
  return record.epoch?.counter ?? 0;
}

/** Whether a node that really uses the volume has lost its export. */
function isToBeRestored(volume: OwnedVolume, attachments: readonly ClusterAttachment[]): boolean {
  const { record } = volume;
  if (record.holders.length === 0 || isExportedAsRecorded(volume)) return false;
  return attachments.some((one) =>
    one.attached && !one.deleting &&
    (isOfHolder(one, record.holders) || publishedCounter(one.published) === record.epoch?.counter)
  );
}

function isDue(
  unwanted: Unwanted,
  unwantedSinceMs: ReadonlyMap<string, number>,
  view: ReconcileView,
  { graceMs }: ReconcileRules,
): boolean {
  const youngestMs = Math.max(0, ...unwanted.holders.map(({ sinceSeconds }) => sinceSeconds * 1000));
  const sinceMs = unwantedSinceMs.get(keyOf(unwanted))!;
  const heldMs = view.nowMs - youngestMs;
  // A time that is yet to come is of a clock that was set since, and says nothing.
  return view.monotonicMs - sinceMs >= graceMs && (heldMs < 0 || heldMs >= graceMs);
}

function doubtOf({ attachments, settled }: ReconcileView): string | undefined {
  if (attachments.some(({ volumeId }) => volumeId === undefined)) {
    return "the volume of some VolumeAttachments is not known";
  }
  return settled ? undefined : "the router booted a moment ago";
}

/** Whether so many volumes are unwanted that it is not by chance. */
function areTooMany(
  unwanted: readonly Unwanted[],
  inUse: number,
  { maxWithdrawals }: ReconcileRules,
): boolean {
  const count = countOf(unwanted);
  return count > maxWithdrawals && count * 2 > inUse;
}

function countOf(unwanted: Iterable<Unwanted>): number {
  return new Set([...unwanted].map(({ volume }) => volume)).size;
}
