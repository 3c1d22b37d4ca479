import { isReadOnlyMode, kindName, parseRecordedCapabilities, sameKind } from "../model/capabilities.ts";
import type { AccessMode, Capability } from "../model/capabilities.ts";
import {
  type Epoch,
  epochNqn,
  formatEpoch,
  isLegacyEpoch,
  newNonce,
  nextEpoch,
  parseEpoch,
} from "../model/epoch.ts";
import { VolumeError } from "../errors.ts";
import { withdrawalSeconds } from "./grace.ts";
import type { Random } from "../ports/system.ts";
import {
  type Holder,
  holderOf,
  isEncrypted,
  isSameNode,
  nodeIdsOf,
  type OwnedVolume,
  type VolumeRecord,
} from "../model/record.ts";

/** The node that wants to hold a volume, and how. */
export interface PublishRequest {
  readonly nodeId: string;
  readonly capability: Capability;
  readonly readOnly: boolean;
  /** Whether its PersistentVolume says that a disk without a record is to be imported. */
  readonly isStatic?: boolean;
  /**
   * Whether nodes have to stage it with a device layer that outlasts a toggle of its export, see `outlastsToggle()`.
   */
  readonly needsLayer?: boolean;
  /** Whether its PersistentVolume says that nodes encrypt it. @default {false} */
  readonly encrypted?: boolean;
}

/** The decision on a publish, from what the router shows. */
export type PublishDecision =
  /** The node holds it and the export is on under the epoch's NQN: nothing to do. */
  | { readonly action: "held"; readonly record: VolumeRecord }
  /** The epoch goes on: write this record and set the export again under the same NQN. */
  | { readonly action: "continue"; readonly record: VolumeRecord }
  /** It is exported to whom the record does not name: withdraw first, then decide again. */
  | { readonly action: "withdraw" }
  /** It has no holder: wait for the grace period of the last withdrawal, then begin the epoch in this record. */
  | { readonly action: "begin"; readonly record: VolumeRecord };

/** Facts from outside that a decision depends on. */
export interface PublishFacts {
  readonly nowMs: number;
  readonly random: Random;
  /** The machine of the requesting node, see `machineHash()`; undefined where it is not known. */
  readonly machine?: string | undefined;
  /**
   * Why it is unknown whether the node that has left and was not shut out has given up the volume, for people; "" when
   * it has.
   *
   * @default {the cluster was not asked}
   */
  readonly stillUnfenced?: string;
  /** The counter of the latest epoch that the cluster knows. @default {0} */
  readonly latestEpoch?: number;
}

/** The maximum number of nodes that hold an RWX block volume at once: the two sides of a live migration. */
export const maxMigratingHolders = 2;

/**
 * Decides what publishing a volume to a node takes.
 *
 * The epoch never changes while a node holds the volume; a new one begins only when it has no holder and the export is
 * off.
 *
 * @throws {VolumeError} invalid when the volume is of another kind, exists-incompatible when the node holds it in
 *   another way, published-elsewhere when another node holds it
 */
export function decidePublish(
  volume: OwnedVolume,
  request: PublishRequest,
  deps: PublishFacts,
): PublishDecision {
  assertKind(volume, request.capability);
  assertEncryption(volume, request);
  if (isOfEarlierEpoch(volume, deps.latestEpoch)) return { action: "withdraw" };
  const { record } = volume;
  const own = holderOf(record, request.nodeId);
  if (own !== undefined) {
    assertSameUse(volume, own, request);
    const same = sameLayer(record, request);
    return { action: same === record && isExportedAsRecorded(volume) ? "held" : "continue", record: same };
  }
  const holder: Holder = {
    nodeId: request.nodeId,
    sinceSeconds: Math.floor(deps.nowMs / 1000),
    mode: request.capability.mode,
    readOnly: request.readOnly,
    ...(deps.machine === undefined || joinsReaders(record, request) ? {} : { machine: deps.machine }),
  };
  if (record.holders.length > 0) {
    assertMayJoin(volume, request);
    assertShutOut(volume, request, deps);
    const { unfenced: _unfenced, ...joined } = sameLayer(record, request);
    return { action: "continue", record: { ...joined, holders: [...record.holders, holder] } };
  }
  if (volume.stored.exported) return { action: "withdraw" };
  const begun = beginEpoch(record, holder, request.capability, deps.random);
  return { action: "begin", record: request.needsLayer ? { ...begun, layered: true } : begun };
}

/**
 * An epoch is layered only while each holder was published with a layer: two PersistentVolumes of one volume may
 * differ.
 */
function sameLayer(record: VolumeRecord, { needsLayer }: PublishRequest): VolumeRecord {
  return needsLayer ? record : withoutLayer(record);
}

/** The record of an epoch in which some holder may lack the device layer. */
export function withoutLayer(record: VolumeRecord): VolumeRecord {
  if (record.layered === undefined) return record;
  const { layered: _layered, ...rest } = record;
  return rest;
}

/**
 * Whether the request adds a reader beside others. Two machines of one name that both only read do no harm, and without
 * machines the record has room for more nodes.
 */
function joinsReaders({ holders }: VolumeRecord, { capability, readOnly }: PublishRequest): boolean {
  return holders.length > 0 && isReadOnlyUse(capability.mode, readOnly);
}

/** The record of a volume whose last holder is gone: it keeps the last epoch, and records the withdrawal's time. */
export function withdrawnRecord(record: VolumeRecord, nowMs: number): VolumeRecord {
  return { ...withoutMark(record), holders: [], withdrawnAtSeconds: withdrawalSeconds(nowMs) };
}

/**
 * The record with an epoch that is no earlier than any that a node has been given, according to the cluster. After a
 * restore of the router, the next epoch could otherwise be earlier, or repeat a counter.
 */
export function raisedRecord(record: VolumeRecord, knownCounter: number, random: Random): VolumeRecord {
  if (knownCounter <= (record.epoch?.counter ?? 0)) return record;
  return { ...record, epoch: { counter: knownCounter, nonce: newNonce(random) } };
}

function beginEpoch(
  record: VolumeRecord,
  holder: Holder,
  capability: Capability,
  random: Random,
): VolumeRecord {
  return {
    ...withoutMark(record),
    epoch: nextEpoch(record.epoch, random),
    // A user of the raw device may write anything to it: from then on it may hold data. Encryption begins with a header.
    blankEpoch: capability.access === "block" && !isEncrypted(record) ? 0 : record.blankEpoch,
    holders: [holder],
  };
}

/** The marks of nodes that have left belong to one epoch. */
function withoutMark(
  { firstHolderLeft: _firstHolderLeft, unfenced: _unfenced, layered: _layered, ...record }: VolumeRecord,
): VolumeRecord {
  return record;
}

/**
 * The NQN of an epoch of a volume. An epoch that the router knows already keeps its NQN there: a changed prefix must not
 * disconnect volumes in use.
 */
export function nqnOf({ stored: { id, exportNqn } }: OwnedVolume, epoch: Epoch, nqnPrefix: string): string {
  if (isLegacyEpoch(epoch)) return exportNqn.endsWith(`:${id}`) ? exportNqn : `${nqnPrefix}:${id}`;
  return exportNqn.endsWith(`:${id}:${formatEpoch(epoch)}`) ? exportNqn : epochNqn(nqnPrefix, id, epoch);
}

/** The counter of the epoch that the export is named after; 0 when it is named in another way. */
export function exportedCounter({ stored: { id, exportNqn } }: OwnedVolume): number {
  const [named, epoch = ""] = exportNqn.split(":").slice(-2);
  return named === id ? parseEpoch(epoch)?.counter ?? 0 : 0;
}

/**
 * Whether the export is named after a later epoch than the record's, or the cluster knows one: an older record is back. Its
 * holders have been shut out since, and whoever got the later epoch may still write.
 */
export function isOfEarlierEpoch(volume: OwnedVolume, latestEpoch = 0): boolean {
  return Math.max(latestEpoch, exportedCounter(volume)) > (volume.record.epoch?.counter ?? 0);
}

/** Whether the export is on under the NQN of the record's epoch. */
export function isExportedAsRecorded(volume: OwnedVolume): boolean {
  const { stored, record } = volume;
  return stored.exported && record.epoch !== undefined &&
    ((isLegacyEpoch(record.epoch) && stored.exportNqn.endsWith(`:${stored.id}`)) ||
      stored.exportNqn.endsWith(`:${stored.id}:${formatEpoch(record.epoch)}`));
}

/** Nodes that can really use the volume: holders whose export is on under the record's NQN. */
export function publishedNodeIds(volume: OwnedVolume): readonly string[] {
  return isExportedAsRecorded(volume) ? nodeIdsOf(volume.record.holders) : [];
}

/**
 * Whether the running epoch is the one in which the node may make a file system, or the header of an encrypted volume.
 * Necessary, never sufficient. Of two nodes that share an encrypted block volume, only the first may.
 */
export function mayFormat(
  record: VolumeRecord,
  epoch: Epoch,
  { nodeId, capability }: Pick<PublishRequest, "nodeId" | "capability">,
  readOnly: boolean,
): boolean {
  if (readOnly || record.blankEpoch === 0 || epoch.counter !== record.blankEpoch) return false;
  if (capability.access === "mount") return true;
  return isEncrypted(record) && record.holders[0]?.nodeId === nodeId && record.unfenced === undefined;
}

/**
 * Whether the node may replay the log of a file system that it only reads. It may if it began the epoch: then nothing
 * read the volume before, and nodes that join wait for a clean log. Holders are in the order in which they came.
 */
export function mayReplay(
  record: VolumeRecord,
  nodeId: string,
  capability: Capability,
  readOnly: boolean,
): boolean {
  return capability.access === "mount" && readOnly && record.firstHolderLeft === undefined &&
    !isLegacyEpoch(record.epoch) && record.holders[0]?.nodeId === nodeId;
}

/** Whether this use of the volume may not write. */
export function isReadOnlyUse(mode: AccessMode, readOnly: boolean): boolean {
  return readOnly || isReadOnlyMode(mode);
}

/** Whether the capability is of the kind that the volume was made for. */
export function isOfKind({ capabilities }: VolumeRecord, capability: Capability): boolean {
  const recorded = parseRecordedCapabilities(capabilities);
  return recorded !== undefined && sameKind(recorded.kind, capability);
}

/**
 * Checks that the capability is of the volume's kind.
 *
 * @throws {VolumeError} invalid when it is not
 */
export function assertKind(volume: OwnedVolume, capability: Capability): void {
  if (isOfKind(volume.record, capability)) return;
  const recorded = parseRecordedCapabilities(volume.record.capabilities);
  throw new VolumeError(
    "invalid",
    `Cannot use the volume in that way because it is of another kind: volume=${volume.stored.id} ` +
      `kind=${recorded === undefined ? volume.record.capabilities : kindName(recorded.kind)} ` +
      `requested=${kindName(capability)}`,
  );
}

/**
 * Whether the volume may be used in that mode with regard to two writers. They need a volume that was made for them, so
 * that a volume made for a single writer never has two.
 */
export function mayBeShared(record: VolumeRecord, mode: AccessMode): boolean {
  if (mode !== "multi-node-multi-writer") return true;
  return parseRecordedCapabilities(record.capabilities)?.modes.includes(mode) === true;
}

/** @throws {VolumeError} invalid when the record and the PersistentVolume differ: plain text would become cipher text */
function assertEncryption({ stored, record }: OwnedVolume, { encrypted = false }: PublishRequest): void {
  if (encrypted === isEncrypted(record)) return;
  throw new VolumeError(
    "invalid",
    `Cannot publish the volume because it was ${encrypted ? "not " : ""}made for encryption: ` +
      `volume=${stored.id} encrypted=${encrypted} in its PersistentVolume`,
  );
}

function assertSameUse(volume: OwnedVolume, own: Holder, request: PublishRequest): void {
  const { mode } = request.capability;
  if (own.readOnly === request.readOnly && isSameWriter(volume.record, own.mode, mode)) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot publish the volume because the node holds it in another way: volume=${volume.stored.id} ` +
      `node=${own.nodeId} mode=${own.mode} readonly=${own.readOnly}; unpublish it first`,
  );
}

/** The modes of one writer. The router treats them alike. */
const writerModes: readonly AccessMode[] = [
  "single-node-writer",
  "single-node-single-writer",
  "single-node-multi-writer",
];

/**
 * Whether both modes are the same, or both are for one writer in the legacy epoch: there the recorded mode was only
 * concluded from the cluster's objects.
 */
function isSameWriter(record: VolumeRecord, own: AccessMode, asked: AccessMode): boolean {
  return own === asked ||
    (isLegacyEpoch(record.epoch) && writerModes.includes(own) && writerModes.includes(asked));
}

/**
 * Keeps a third writer out. A node that has left still knows the name of the export, and may write under it. Until that
 * ends, only that node may join again.
 */
function assertShutOut(
  { stored, record: { unfenced, holders } }: OwnedVolume,
  request: PublishRequest,
  { machine, stillUnfenced = "the cluster was not asked" }: PublishFacts,
): void {
  if (unfenced === undefined || stillUnfenced === "" || isSameNode(unfenced, request.nodeId, machine)) return;
  const names = nodeIdsOf(holders).join(", ");
  throw new VolumeError(
    "published-elsewhere",
    `Cannot publish the volume to a third node because a node that left it could not be shut out: volume=${stored.id} ` +
      `node=${names} requested=${request.nodeId}: ${stillUnfenced}; it goes on when that node is seen to have given the ` +
      `volume up, or when node=${names} gives it up too, because the volume is then exported under a new name`,
  );
}

function assertMayJoin(volume: OwnedVolume, request: PublishRequest): void {
  const { holders } = volume.record;
  const { mode } = request.capability;
  const allInMode = holders.every((holder) => holder.mode === mode);
  if (mode === "multi-node-reader-only" && allInMode) return;
  const migrating = mode === "multi-node-multi-writer" && allInMode &&
    request.capability.access === "block" && mayBeShared(volume.record, mode);
  if (migrating && holders.length < maxMigratingHolders) return;
  const names = nodeIdsOf(holders).join(", ");
  throw new VolumeError(
    "published-elsewhere",
    `Cannot publish the volume because another node holds it: volume=${volume.stored.id} node=${names} ` +
      `requested=${request.nodeId}` +
      (migrating ? `; a block volume has at most ${maxMigratingHolders} holders, while it migrates` : ""),
  );
}
