import {
  type Holder,
  maxGrowths,
  nodeDigest,
  nodeIdsOf,
  type OwnedVolume,
  type UnfencedNode,
  type VolumeRecord,
} from "../../volume/model/record.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isLegacyId } from "../../volume/model/ids/ids.ts";
import { filePrefixOf, isImageOf } from "../../volume/model/image_names.ts";
import { usesOwnImage } from "../../volume/model/sources.ts";
import { getOwned, isNamedAsOwn, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import { decideUnpublish } from "../../volume/rules/unpublish.ts";
import { assertVolumeGone, notFound, readView } from "../load.ts";
import { assertInNoOtherSlot, isDiskOf } from "../other_slots.ts";
import { fits } from "../records/comment.ts";
import { isOlderThan, latestEpoch, latestEpochIfReported, olderEpoch } from "../records/epochs.ts";
import { type About, changeByRule, type Decision } from "../records/loop.ts";
import { type Step, withdrawal } from "../records/steps.ts";
import type { View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Takes a volume from a node, without needing that node. When no holder is left, the export is off and read back as off
 * before this returns. Two commands; one when there is nothing to do, or when the router has the record that this process
 * has written last; two when there is no such volume.
 *
 * @param nodeId the node, or "" for all of them
 * @throws {VolumeError} precondition when the volume is not this cluster's; unavailable when it is not there and that
 * proves nothing
 */
export async function unpublishVolume(
  deps: ControllerDeps,
  id: string,
  nodeId: string,
  context: CallContext,
): Promise<void> {
  const call = { ...deps, context };
  const rule = (view: View) => decideUnpublishing(call, view, nodeId);
  report(call, id, nodeId, await changeByRule(call, about(call, id), rule));
}

function about(call: ControllerCall, id: string): About {
  return { id, verb: "unpublish", read: () => readView(call, id, "unpublish") };
}

/** Takes a volume, as it was just read, from a node, or from all of them. */
export async function takeFrom(call: ControllerCall, first: View, nodeId: string): Promise<void> {
  const { id } = first;
  const rule = (view: View) => decideTaking(call, view, owned(call, view), nodeId);
  report(call, id, nodeId, await changeByRule(call, { ...about(call, id), first }, rule));
}

/** What came of it. */
type Unpublished =
  /** There is no such volume. */
  | { readonly how: "gone" }
  /** Nobody has it. */
  | { readonly how: "done"; readonly record: VolumeRecord }
  | { readonly how: "not-holder"; readonly record: VolumeRecord; readonly remaining: readonly Holder[] }
  | { readonly how: "withdrawn"; readonly record: VolumeRecord; readonly nodeIds: readonly string[] }
  | { readonly how: "older"; readonly record: VolumeRecord; readonly event: ReturnType<typeof olderEpoch> }
  | { readonly how: "left"; readonly record: VolumeRecord; readonly remaining: readonly Holder[] };

/** Decides by what is known of the disk in the slot, whosever it is. */
async function decideUnpublishing(
  call: ControllerCall,
  view: View,
  nodeId: string,
): Promise<Decision<Unpublished>> {
  const { cluster } = call.settings;
  const { id, volume: stored } = view;
  const volume = stored === undefined || isNobodys(call, stored) ? undefined : owned(call, view);
  if (volume !== undefined && !isAnothers(volume, cluster)) {
    return await decideTaking(call, view, volume, nodeId);
  }
  await assertInNoOtherSlot(call, view, "unpublish", (disk) => hasNot(call, disk, nodeId));
  if (volume !== undefined) assertShownOrGone(call, id, view);
  call.misplaced?.assertNotSeen(cluster, id, "unpublish");
  return { answer: { how: "gone" } };
}

/** Decides for a volume that is this cluster's. Only its last holder is taken away unread: of others a read tells more. */
async function decideTaking(
  call: ControllerCall,
  view: View,
  volume: OwnedVolume,
  nodeId: string,
): Promise<Decision<Unpublished>> {
  const { record } = volume;
  const isOwnImage = usesOwnImage(volume, call.settings.cluster);
  const isOnlyHolder = record.holders.length === 1 && record.holders[0]!.nodeId === nodeId;
  if (view.isAssumed && !(isOwnImage && isOnlyHolder)) return { need: "own" };
  if (!isOwnImage) await assertInNoOtherSlot(call, view, "unpublish", (disk) => hasNot(call, disk, nodeId));
  const decision = decideUnpublish(volume, nodeId);
  const isStep = decision.action === "withdraw" || decision.action === "leave";
  const latest = await (isStep ? latestEpochIfReported : latestEpoch)(call, volume) ?? 0;
  if (isOlderThan(latest, volume)) {
    const event = olderEpoch(volume, latest);
    return {
      step: withdrawal(call, volume, latest),
      next: ({ record }) => ({ how: "older", record, event }),
    };
  }
  switch (decision.action) {
    case "done":
      return { answer: { how: "done", record }, stands: volume };
    case "not-holder": {
      const { remaining } = decision;
      const unfenced = await forgottenHolder(call, volume, nodeId);
      if (unfenced === undefined) return { answer: { how: "not-holder", record, remaining }, stands: volume };
      return {
        step: await leaving(call, volume, { record, unfenced }),
        next: () => ({ how: "left", record, remaining }),
      };
    }
    case "withdraw": {
      const nodeIds = nodeIdsOf(record.holders);
      return {
        step: withdrawal(call, volume),
        next: ({ record }) => ({ how: "withdrawn", record, nodeIds }),
      };
    }
    case "leave": {
      const { record, remaining } = decision;
      return {
        step: await leaving(call, volume, decision),
        next: () => ({ how: "left", record, remaining }),
      };
    }
  }
}

function owned({ settings }: ControllerCall, { volume }: View): OwnedVolume {
  return getOwned(volume!, settings.cluster, "unpublish");
}

/** Shows the cluster who has the volume now, and tells people what they should know. */
function report(call: ControllerCall, id: string, nodeId: string, done: Unpublished): void {
  const { events, notes, projection, context: { requestId } } = call;
  if (done.how === "gone") return;
  projection.show(id, done.record);
  if (done.how === "older") events.occurred(done.event);
  // A call that names a node says only that this node does without the volume from now on.
  const isFenced = done.how === "withdrawn" && nodeId === "" && done.nodeIds.length > 0;
  if (isFenced) events.occurred({ kind: "fenced", volumeId: id, nodeIds: done.nodeIds });
  if (done.how !== "left" && done.how !== "not-holder") return;
  const holders = nodeIdsOf(done.remaining);
  const fields = { volume: id, node: nodeId, holders, requestId };
  if (done.how === "not-holder") {
    return notes.warn("the node does not hold the volume; nothing changed", fields);
  }
  events.occurred({ kind: "leaver-unfenced", volumeId: id, nodeId, remaining: holders });
  notes.warn("the volume is still exported for its other holder: the node that left is not fenced", fields);
}

/**
 * Throws unless the disk of a volume is in another slot, or gone: otherwise it may still come back, exported.
 *
 * @throws {VolumeError} unavailable when its absence proves nothing
 */
function assertShownOrGone(deps: ControllerDeps, id: string, view: VolumeView): void {
  const filePrefix = filePrefixOf(id, deps.settings.cluster);
  if (view.sharers.some(({ imagePath }) => isImageOf(imagePath, filePrefix))) return;
  assertVolumeGone(deps, id, view);
}

/**
 * Whether it is a person's disk that is not exported, so that no node has it: publishing one that a PersistentVolume
 * names was refused. A disk that is named as a volume has only lost its record.
 */
function isNobodys({ settings }: ControllerDeps, stored: StoredVolume): boolean {
  if (stored.exported || isLegacyId(stored.id)) return false;
  return judgeOwnership(stored, settings.cluster).state === "no-record" &&
    !isNamedAsOwn(stored, settings.cluster, settings.basePaths);
}

/** Whether a node certainly does not have a volume by its disk in another slot. */
function hasNot({ settings }: ControllerDeps, stored: StoredVolume, nodeId: string): boolean {
  if (!stored.exported) return true;
  const ownership = judgeOwnership(stored, settings.cluster);
  return ownership.state === "owned" && decideUnpublish(ownership.volume, nodeId).action === "not-holder";
}

/** Whether another volume's disk, which nodes may use, got this one's slot. */
function isAnothers(volume: OwnedVolume, cluster: string): boolean {
  const { stored } = volume;
  return !usesOwnImage(volume, cluster) && isDiskOf(stored, stored.id, cluster) === false;
}

/**
 * Takes a volume from every node that holds it, by a person's word that whoever gave it to them is gone. Its export is read
 * back as off before this returns. Two commands.
 *
 * @returns the ids of the nodes that held it
 * @throws {VolumeError} not-found; precondition when the volume is not this cluster's, or its slot has the disk of another
 * one; unavailable
 */
export async function withdrawVolume(
  deps: ControllerDeps,
  id: string,
  context: CallContext,
): Promise<readonly string[]> {
  const call = { ...deps, context };
  const view = await readView(call, id, "withdraw");
  const { volume: stored } = view;
  if (stored === undefined) throw notFound("withdraw", id);
  const volume = getOwned(stored, deps.settings.cluster, "withdraw");
  if (isAnothers(volume, deps.settings.cluster)) {
    throw new VolumeError(
      "precondition",
      `Cannot withdraw the volume because the disk of another volume is in its slot: volume=${id} ` +
        `path=${stored.imagePath} nqn=${stored.exportNqn}; give the disks their slots back`,
    );
  }
  await takeFrom(call, view, "");
  return nodeIdsOf(volume.record.holders);
}

/**
 * The node, where the cluster shows that it was given the epoch of a shared volume: a router that went back to an earlier record
 * has forgotten that it joined, and serves it under the others' NQN.
 *
 * @throws {VolumeError} unavailable when the cluster does not answer
 */
async function forgottenHolder(
  { clusterView, context }: ControllerCall,
  { stored, record: { holders, epoch, unfenced } }: OwnedVolume,
  nodeId: string,
): Promise<UnfencedNode | undefined> {
  const isShared = holders.some(({ mode }) => mode === "multi-node-multi-writer");
  // The record has room for one, which keeps others out until its kubelet has given the volume up.
  if (!isShared || unfenced !== undefined) return undefined;
  const attachments = await clusterView?.attachments(context) ?? [];
  const wasGiven = attachments.some((one) =>
    one.volumeId === stored.id && one.nodeId === nodeId && one.attached && one.epochCounter === epoch?.counter
  );
  return wasGiven ? { nodeDigest: nodeDigest(nodeId) } : undefined;
}

/**
 * Takes a volume from one of several nodes. The others go on under the same NQN, so that nothing fences the one that leaves: it
 * is noted unless its kubelet says that it has given the volume up.
 */
async function leaving(
  call: ControllerCall,
  volume: OwnedVolume,
  { record, unfenced }: { readonly record: VolumeRecord; readonly unfenced: UnfencedNode | undefined },
): Promise<Step> {
  const detached = unfenced && { ...unfenced, volumeId: volume.stored.id };
  const reason = detached && await call.detachedNodes.reasonAgainst(detached, call.context.signal);
  const noted = reason === undefined ? record : withUnfenced(volume, record, unfenced);
  return { kind: "leave", volume, record: noted, change: {}, isDone: () => true };
}

/**
 * Notes as much of a node as there is room for, once the volume has been grown as often as can be: nothing must keep the node
 * from leaving.
 */
function withUnfenced(
  volume: OwnedVolume,
  record: VolumeRecord,
  unfenced: UnfencedNode | undefined,
): VolumeRecord {
  if (unfenced === undefined) return record;
  const noted = { ...record, unfenced };
  return fits(volume, { ...noted, growths: maxGrowths })
    ? noted
    : { ...record, unfenced: { nodeDigest: unfenced.nodeDigest } };
}
