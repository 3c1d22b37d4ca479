import { formatEpoch, isLegacyEpoch } from "../../volume/model/epoch.ts";
import { VolumeError } from "../../volume/errors.ts";
import { poolOf } from "../../volume/model/ids.ts";
import type { VolumeParameters } from "../../volume/model/parameters.ts";
import {
  type ContextValues,
  formatPublishContext,
  type PublishContext,
} from "../../volume/model/publish_context.ts";
import { isImported } from "../../volume/model/sources.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FileView, StoredVolume } from "../../volume/model/inventory.ts";
import {
  decidePublish,
  isExportedAsRecorded,
  isOfKind,
  isReadOnlyUse,
  mayFormat,
  mayReplay,
  type PublishFacts,
  type PublishRequest,
  withoutLayer,
} from "../../volume/rules/publish.ts";
import { isSameNode } from "../../volume/rules/detached_nodes.ts";
import { mayConsentToFormat } from "../../volume/rules/format_consent.ts";
import {
  type Holder,
  maxGrowths,
  nodeIdsOf,
  type OwnedVolume,
  rewritten,
  type VolumeRecord,
} from "../../volume/model/record.ts";
import {
  assertImageShown,
  assertImageUsable,
  findUnused,
  loadForChange,
  notFound,
  withImage,
} from "../load.ts";
import { exportKnown, fits } from "../change.ts";
import { attachRefusal, reportingRefusal } from "../refusals.ts";
import { growVolume } from "../volumes/expand.ts";
import { exportAs, recordNqn } from "./export_as.ts";
import { isOlderThan, latestEpoch, latestEpochIfReported } from "../records/epochs.ts";
import { waitForGrace, withdrawExport, withdrawOlder } from "./withdrawal.ts";
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
  const publishAny = async () =>
    await publishKnown(call, id, request, parameters) ?? await publish(call, id, request, parameters);
  return await reportingRefusal(deps, refusal, publishAny);
}

/**
 * Begins an epoch of a volume as this process remembers it: nobody holds it, and its export is off. Undefined when it has to be
 * read first, also to tell what is against it.
 */
async function publishKnown(
  call: ControllerCall,
  id: string,
  request: PublishRequest,
  parameters: VolumeParameters,
): Promise<ContextValues | undefined> {
  const known = request.isStatic ? undefined : findUnused(call, id, "publish");
  if (known === undefined || !isOfKind(known.record, request.capability)) return undefined;
  if (!await call.nodes.isKnown(request.nodeId, call.context)) return undefined;
  const machine = await call.nodes.machineOf(request.nodeId, call.context);
  const { clock, random } = call;
  const latest = await latestEpochIfReported(call, known);
  const facts = { nowMs: clock.now(), random, machine, latestEpoch: latest ?? 0 };
  const decision = decidePublish(known, request, facts);
  if (decision.action !== "begin") return undefined;
  const record = await withConsent(call, known, asFits(known, decision.record), request);
  if (isOfDoubtfulUse(record, request, latest)) return undefined;
  const published = await exportAsKnown(call, known, record, parameters.nvmePort);
  if (published === undefined) return undefined;
  call.projection.show(id, published.record);
  return publishContext(call, published, request, parameters);
}

/** Undefined where the router did not do it as remembered, see {@linkcode exportKnown}. */
async function exportAsKnown(
  call: ControllerCall,
  known: OwnedVolume,
  record: VolumeRecord,
  port: number,
): Promise<OwnedVolume | undefined> {
  const nqn = recordNqn(call, known, record);
  const wanted = (after: StoredVolume) =>
    after.imagePath === known.stored.imagePath && after.exportPort === port &&
    // A router that forgot a growth would give the node less than the volume holds.
    after.sizeBytes === known.stored.sizeBytes &&
    after.routerUses === undefined && !after.mayBeMounted;
  const change = { export: { nqn, port }, neverMounted: true } as const;
  return await exportKnown(call, "publish", known, record, wanted, change);
}

async function publish(
  call: ControllerCall,
  id: string,
  request: PublishRequest,
  parameters: VolumeParameters,
): Promise<ContextValues> {
  const claim = request.isStatic
    ? {
      kind: request.capability,
      mode: request.capability.mode,
      exportIsUnused: false,
      encrypted: request.encrypted === true,
    }
    : undefined;
  const loaded = await loadForChange(call, id, "publish", claim);
  const { view, volume: found } = await withImage(call, loaded, "publish");
  if (found === undefined) throw notFound("publish", id);
  assertImageUsable(call, found, view, "publish");
  // An epoch that goes on has shown its image when it began.
  const isUnheld = found.record.holders.length === 0;
  const volume = await (isUnheld ? readyToBegin : withForgottenGrowth)(call, found, view);
  await assertKnownNode(call, request.nodeId);
  const holds = holderOf(volume, request.nodeId) !== undefined;
  const machine = holds ? undefined : await call.nodes.machineOf(request.nodeId, call.context);
  const published = await settle(call, volume, view, { ...request, machine }, parameters);
  // A person may have turned the last export on meanwhile: its node would write beside the next one.
  if (published === "waited") return await publish(call, id, request, parameters);
  call.projection.show(id, published.record);
  return publishContext(call, published, request, parameters);
}

/** What comes before every new epoch: its image is there, and its disk is not smaller. */
async function readyToBegin(
  call: ControllerCall,
  volume: OwnedVolume,
  view: FileView,
): Promise<OwnedVolume> {
  assertImageShown(volume, view, "publish");
  return await withForgottenGrowth(call, volume, view);
}

/**
 * Grows a disk again whose router lost its last seconds after the volume had grown: the image has kept the size that the
 * PersistentVolume names, and that a file system may have. One command; none for any other volume. An export that is on, as
 * of a publish that was given up, stays on where this router grows disks so. A router that grows no disk keeps its volume from
 * no node: that is published as it is, after another look.
 */
async function withForgottenGrowth(
  call: ControllerCall,
  volume: OwnedVolume,
  { files }: Pick<FileView, "files">,
): Promise<OwnedVolume> {
  const { id, imagePath, sizeBytes, exported } = volume.stored;
  const imageBytes = files.find(({ path }) => path === imagePath)?.sizeBytes ?? 0n;
  const canGrow = !exported || call.settings.growth === "live";
  if (imageBytes <= sizeBytes || !canGrow || isImported(volume.record)) return volume;
  const fields = { volume: id, size: String(sizeBytes), image: String(imageBytes) };
  call.notes.warn("the router forgot that the volume had grown: growing its disk to its image", fields);
  const grow = () => growVolume(call, "publish", volume, imageBytes);
  try {
    return await call.promised.during(poolOf(imagePath), imageBytes - sizeBytes, grow);
  } catch (error) {
    if (!VolumeError.is(error, "precondition")) throw error;
    call.notes.warn("the volume is published in the size of its disk", { ...fields, reason: error.message });
    const { volume: kept } = await loadForChange(call, id, "publish");
    if (kept === undefined) throw notFound("publish", id);
    return kept;
  }
}

/** Returns the volume as it is published; "waited" when it is to be read again first, as that was seconds ago. */
async function settle(
  call: ControllerCall,
  volume: OwnedVolume,
  view: FileView,
  request: PublishRequest & Pick<PublishFacts, "machine">,
  parameters: VolumeParameters,
): Promise<OwnedVolume | "waited"> {
  const { clock, random } = call;
  const { machine } = request;
  const stillUnfenced = await reasonStillUnfenced(call, volume, request);
  const isStep = holderOf(volume, request.nodeId) === undefined || !isExportedAsRecorded(volume);
  const latest = await (isStep ? latestEpochIfReported : latestEpoch)(call, volume);
  const facts = { nowMs: clock.now(), random, machine, stillUnfenced, latestEpoch: latest ?? 0 };
  const decision = decidePublish(volume, request, facts);
  const { id, comment, exportPort } = volume.stored;
  const port = portOf(volume, request.nodeId, parameters);
  // A withdrawal that the router runs late would take away what is answered here.
  const inDoubt = call.memory.inDoubt.mayStillApply(id, comment);
  const others = isHeldByOthers(volume, request.nodeId);
  if (decision.action === "held" && exportPort === port && !inDoubt) return volume;
  if (decision.action === "withdraw") {
    const withdrawn = latest !== undefined && isOlderThan(latest, volume)
      ? await withdrawOlder(call, volume, latest, "publish")
      : await withdrawExport(call, volume, "publish");
    return await settle(call, await readyToBegin(call, withdrawn, view), view, request, parameters);
  }
  const joins = others && holderOf(volume, request.nodeId) === undefined;
  if (joins && request.capability.mode === "multi-node-multi-writer") {
    await assertHoldersKnown(call, volume, request.nodeId);
    await assertPair(call, volume, request.nodeId);
  }
  const decided = asFits(volume, decision.record);
  const record = inDoubt ? rewritten(decided) : decided;
  if (decision.action === "begin") {
    if (await waitForGrace(call, volume, "publish")) return "waited";
    const begun = await withConsent(call, volume, record, request);
    // A consent may have been used in an epoch that the router has forgotten.
    assertNeverUsed(volume, begun, request, latest);
    return await exportAs(call, volume, { record: begun, port });
  }
  return await exportAs(call, volume, { record, port });
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
  notes.warn("the claim's owner allows one format", { volume: id, epoch: counter });
  return { ...record, blankEpoch: counter };
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
 * the volume.
 *
 * @throws {VolumeError} published-elsewhere when the cluster shows such a node; unavailable when it does not answer
 */
async function assertHoldersKnown(call: ControllerCall, volume: OwnedVolume, nodeId: string): Promise<void> {
  const { stored, record: { epoch, holders } } = volume;
  const attachments = await call.clusterView?.attachments(call.context) ?? [];
  const missing = attachments.find((one) =>
    one.volumeId === stored.id && one.attached && one.nodeId !== nodeId &&
    one.epochCounter === epoch?.counter && !holders.some((holder) => holder.nodeId === one.nodeId)
  );
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
