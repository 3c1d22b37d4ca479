import { formatEpoch, isLegacyEpoch } from "../../volume/model/epoch.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { VolumeParameters } from "../../volume/model/parameters.ts";
import {
  type ContextValues,
  formatPublishContext,
  type PublishContext,
} from "../../volume/model/publish_context.ts";
import { isImported, isPlain } from "../../volume/model/sources.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import {
  decidePublish,
  isExportedAsRecorded,
  isReadOnlyUse,
  mayFormat,
  mayReplay,
  type PublishFacts,
  type PublishRequest,
  withoutLayer,
} from "../../volume/rules/publish.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import { mayConsentToFormat } from "../../volume/rules/format_consent.ts";
import {
  type Holder,
  isSameNode,
  maxGrowths,
  nodeIdsOf,
  type OwnedVolume,
  type VolumeRecord,
} from "../../volume/model/record.ts";
import { assertImageShown, assertImageUsable, notFound, readOwnView } from "../load.ts";
import { fits } from "../records/comment.ts";
import { attachRefusal, reportingRefusal } from "../refusals.ts";
import { ForgottenGrowths } from "./forgotten_growths.ts";
import { isOlderThan, latestEpoch, latestEpochIfReported, olderEpoch } from "../records/epochs.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { exported, recordNqn, withdrawal } from "../records/steps.ts";
import type { View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Publishes a volume to a node: the record names the holder and the export is on under the epoch's NQN. Two commands;
 * one when it is so already, or when the router has the record of an unpublished volume that this process has written
 * last. One more when it was imported, or the router forgot that it had grown; two more when it is imported now.
 *
 * @throws {VolumeError} not-found, node-unknown, published-elsewhere, exists-incompatible, precondition, unavailable
 */
export async function publishVolume(
  deps: ControllerDeps,
  id: string,
  request: PublishRequest,
  parameters: VolumeParameters,
  context: CallContext,
): Promise<ContextValues> {
  const call = { ...deps, context };
  const refusal = (error: VolumeError) => attachRefusal(id, request.nodeId, error);
  const published = await reportingRefusal(deps, refusal, async () => {
    const read = () => readToPublish(call, id, request);
    const first = request.isStatic ? await read() : undefined;
    const growths = new ForgottenGrowths(call);
    const rule = (view: View) => decidePublishing(call, view, request, parameters, growths);
    return await changeByRule(call, { id, verb: "publish", first, read }, rule);
  });
  call.projection.show(id, published.record);
  return publishContext(call, published, request, parameters);
}

/** A static volume may have to be imported first, and one of the legacy driver taken over. */
async function readToPublish(call: ControllerCall, id: string, request: PublishRequest): Promise<View> {
  const claim = request.isStatic
    ? {
      kind: request.capability,
      mode: request.capability.mode,
      exportIsUnused: false,
      encrypted: request.encrypted === true,
    }
    : undefined;
  const view = await readOwnView(call, id, "publish", claim);
  if (view.volume === undefined) throw notFound("publish", id);
  return view;
}

function ownedIn({ settings }: ControllerCall, { volume }: View): OwnedVolume {
  return assertOwned(volume!, settings.cluster, "publish");
}

/** Decides by what is known of the volume. Only a new epoch begins unread: of an older one a read tells more. */
async function decidePublishing(
  call: ControllerCall,
  view: View,
  request: PublishRequest,
  parameters: VolumeParameters,
  growths: ForgottenGrowths,
): Promise<Decision<OwnedVolume>> {
  const volume = ownedIn(call, view);
  if (view.isAssumed && !mayBeginUnread(call, volume)) return { need: "own" };
  assertImageUsable(call, volume, view, "publish");
  // An epoch that goes on has shown its image when it began.
  if (volume.record.holders.length === 0) assertImageShown(volume, view, "publish");
  const grown = growths.again(volume, view);
  if (grown !== undefined) return grown;
  await assertKnownNode(call, request.nodeId);
  const holds = holderOf(volume, request.nodeId) !== undefined;
  const machine = holds ? undefined : await call.nodes.machineOf(request.nodeId, call.context);
  const stillUnfenced = await reasonStillUnfenced(call, volume, { ...request, machine });
  const isStep = !holds || !isExportedAsRecorded(volume);
  const latest = await (isStep ? latestEpochIfReported : latestEpoch)(call, volume);
  const { clock, random } = call;
  const facts = { nowMs: clock.now(), random, machine, stillUnfenced, latestEpoch: latest ?? 0 };
  const decision = decidePublish(volume, request, facts);
  const port = portOf(volume, request.nodeId, parameters);
  if (decision.action === "withdraw") {
    return view.isAssumed ? { need: "own" } : withdrawnFirst(call, volume, latest);
  }
  const record = asFits(volume, decision.record);
  if (decision.action === "begin") {
    const begun = await withConsent(call, volume, record, request);
    // A consent may have been used in an epoch that the router has forgotten.
    assertNeverUsed(volume, begun, request, latest);
    const step = exported(call, "begin", volume, { record: begun, port }, view.isAssumed);
    return { step, next: (after) => withConsentNoted(call, after, begun !== record) };
  }
  const isShared = request.capability.mode === "multi-node-multi-writer";
  if (isShared) await assertNoHolderMissing(call, volume, request.nodeId);
  if (decision.action === "held" && volume.stored.exportPort === port) {
    return { answer: volume, stands: volume };
  }
  if (isShared && !holds) await assertPair(call, volume, request.nodeId);
  return { step: exported(call, "continue", volume, { record, port }), next: (after) => after };
}

/** Nobody has it, and its export is off. */
function mayBeginUnread({ settings }: ControllerCall, volume: OwnedVolume): boolean {
  return isPlain(volume, settings.cluster) && volume.record.holders.length === 0 && !volume.stored.exported;
}

/** The export goes off that is nobody's on record, or of an older epoch than the cluster knows; then the rule decides again. */
function withdrawnFirst(
  call: ControllerCall,
  volume: OwnedVolume,
  latest: number | undefined,
): Decision<OwnedVolume> {
  if (latest === undefined || !isOlderThan(latest, volume)) {
    return { step: withdrawal(call, volume), next: () => "again" };
  }
  const next = () => {
    call.events.occurred(olderEpoch(volume, latest));
    return "again" as const;
  };
  return { step: withdrawal(call, volume, latest), next };
}

/**
 * Whether the epoch would allow a format, and the cluster does not say whether a node has had the volume: the record of a router
 * that went back in time says that it was never written.
 *
 * @param latest undefined where the cluster was asked, and did not answer
 */
function isOfDoubtfulUse(
  record: VolumeRecord,
  request: PublishRequest,
  latest: number | undefined,
): boolean {
  const readOnly = isReadOnlyUse(request.capability.mode, request.readOnly);
  return latest === undefined && mayFormat(record, record.epoch!, request, readOnly);
}

/** @throws {VolumeError} unavailable */
function assertNeverUsed(
  { stored: { id } }: OwnedVolume,
  record: VolumeRecord,
  request: PublishRequest,
  latest: number | undefined,
): void {
  if (!isOfDoubtfulUse(record, request, latest)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot publish the volume yet because it is on record as never written, and the cluster does not say whether a node ` +
      `has had it since: volume=${id}; try again`,
  );
}

/**
 * Why a node that has left may still write, in words; "" when its kubelet says that it has given the volume up. Asks nobody for
 * a node that may join whatever the answer is.
 */
async function reasonStillUnfenced(
  call: ControllerCall,
  volume: OwnedVolume,
  { nodeId, machine }: PublishRequest & Pick<PublishFacts, "machine">,
): Promise<string> {
  const { stored, record: { unfenced, holders } } = volume;
  if (unfenced === undefined || holders.length === 0 || holderOf(volume, nodeId) !== undefined) return "";
  if (isSameNode(unfenced, nodeId, machine)) return "";
  const detached = { ...unfenced, volumeId: stored.id };
  return await call.detachedNodes.reasonAgainst(detached, call.context.signal) ?? "";
}

/**
 * The port of the export. Another one would cut the nodes that hold the volume already: it changes only for the one node
 * that holds it, and only to the port that its PersistentVolume names.
 */
function portOf(
  volume: OwnedVolume,
  nodeId: string,
  { nvmePort, namesNoPort = false }: VolumeParameters,
): number {
  const { stored, record } = volume;
  const keeps = isHeldByOthers(volume, nodeId) || isLegacyEpoch(record.epoch) || namesNoPort;
  const isOfEpoch = record.holders.length > 0 && stored.exportPort !== 0 &&
    isExportedAsRecorded({ ...volume, stored: { ...stored, exported: true } });
  return keeps && isOfEpoch ? stored.exportPort : nvmePort;
}

function isHeldByOthers({ record }: OwnedVolume, nodeId: string): boolean {
  return record.holders.some((holder) => holder.nodeId !== nodeId);
}

function holderOf({ record }: OwnedVolume, nodeId: string): Holder | undefined {
  return record.holders.find((holder) => holder.nodeId === nodeId);
}

/** The mark of a device layer only allows growth: it is left out where it would take room that holders may need. */
function asFits(volume: OwnedVolume, record: VolumeRecord): VolumeRecord {
  return fits(volume, { ...record, growths: maxGrowths }) ? record : withoutLayer(record);
}

/** The record of an epoch that begins: the owner of the claim may allow one more format, in exactly this one. */
async function withConsent(
  { consents, context, notes }: ControllerCall,
  { stored: { id } }: OwnedVolume,
  record: VolumeRecord,
  { capability, readOnly }: PublishRequest,
): Promise<VolumeRecord> {
  if (consents === undefined || !mayConsentToFormat(record, capability, readOnly)) return record;
  const { counter } = record.epoch!;
  try {
    if (!await consents.allowsFormat(id, counter, context.signal)) return record;
  } catch (error) {
    context.signal.throwIfAborted();
    notes.warn("cannot read whether the claim's owner allows a format", {
      volume: id,
      reason: String(error),
    });
    return record;
  }
  return { ...record, blankEpoch: counter };
}

function withConsentNoted({ notes }: ControllerCall, volume: OwnedVolume, isNew: boolean): OwnedVolume {
  const { stored: { id }, record: { epoch } } = volume;
  if (isNew) notes.warn("the claim's owner allows one format", { volume: id, epoch: epoch?.counter });
  return volume;
}

function publishContext(
  deps: ControllerDeps,
  volume: OwnedVolume,
  request: PublishRequest,
  parameters: VolumeParameters,
): ContextValues {
  const { record, stored } = volume;
  const { nodeId, capability, needsLayer = false, encrypted = false } = request;
  const readOnly = isReadOnlyUse(capability.mode, request.readOnly);
  const mayConsent = mayConsentToFormat(record, capability, request.readOnly);
  const context: PublishContext = {
    nqn: recordNqn(deps, volume, record),
    epoch: formatEpoch(record.epoch!),
    addresses: parameters.nvmeAddress.split(","),
    port: stored.exportPort,
    sizeBytes: stored.sizeBytes,
    readOnly,
    mayFormat: mayFormat(record, record.epoch!, request, readOnly),
    imported: isImported(record),
    // A node that refuses to make a file system names whose consent it takes.
    claim: mayConsent ? deps.consents?.claimOf(stored.id) : undefined,
    mayReplay: mayReplay(record, nodeId, capability, readOnly),
    machine: holderOf(volume, nodeId)?.machine,
    needsLayer,
    encrypted,
  };
  return formatPublishContext(context, capability.access === "mount" ? capability.filesystem : "");
}

/**
 * Keeps a third writer out where the router has gone back to an earlier record of the same epoch, which lacks a node that has
 * the volume: one that would join, or that has left since and is on that record.
 *
 * @throws {VolumeError} published-elsewhere when the cluster shows such a node; unavailable when it does not answer
 */
async function assertNoHolderMissing(
  call: ControllerCall,
  volume: OwnedVolume,
  nodeId: string,
): Promise<void> {
  const { stored, record: { epoch, holders } } = volume;
  const attachments = await call.clusterView?.attachments(call.context) ?? [];
  const attached = attachments.filter((one) =>
    one.volumeId === stored.id && one.attached && one.epochCounter === epoch?.counter
  );
  if (attached.some((one) => one.nodeId === nodeId)) return;
  const missing = attached.find((one) => !holders.some((holder) => holder.nodeId === one.nodeId));
  if (missing === undefined) return;
  throw new VolumeError(
    "published-elsewhere",
    `Cannot publish the volume because its record on the router is older than what the cluster shows: volume=${stored.id} ` +
      `node=${missing.nodeId} is attached, and the record names node=${nodeIdsOf(holders).join(", ")} ` +
      `requested=${nodeId}; delete the pods that use it, so that it is detached from every node`,
  );
}

/** Two writers at once are allowed for a migration, and for nothing else where an operator says so. */
async function assertPair(call: ControllerCall, volume: OwnedVolume, nodeId: string): Promise<void> {
  const { stored: { id: volumeId }, record: { holders } } = volume;
  const reason = await call.pairs.reasonAgainst({ volumeId, nodeId, holders }, call.context.signal);
  if (reason === undefined) return;
  const names = nodeIdsOf(holders).join(", ");
  throw new VolumeError(
    "published-elsewhere",
    `Cannot publish the volume to a second node because no virtual machine migrates between them: volume=${volumeId} ` +
      `node=${names} requested=${nodeId}: ${reason} (--migration-pairs); it goes on when node=${names} has given the volume up`,
  );
}

async function assertKnownNode(call: ControllerCall, nodeId: string): Promise<void> {
  if (await call.nodes.isKnown(nodeId, call.context)) return;
  throw new VolumeError(
    "node-unknown",
    `Cannot publish the volume because the node is not known: node=${nodeId}; check that the driver's pod on that node runs ` +
      "and has registered with the kubelet; without a cluster, set --known-node",
  );
}
