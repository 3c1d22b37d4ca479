import {
  clusterOfComment,
  type Holder,
  maxGrowths,
  nodeIdsOf,
  type OwnedVolume,
  type UnfencedNode,
  type VolumeRecord,
} from "../../volume/model/record.ts";
import { parseEpoch } from "../../volume/model/epoch.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertSettled } from "../../volume/rules/absence.ts";
import { isLegacyId, nameDigest } from "../../volume/model/ids.ts";
import { filePrefixOf, isImageOf, volumeOfImage } from "../../volume/model/layout.ts";
import { isImported, usesOwnImage } from "../../volume/model/sources.ts";
import { assertReadable, getOwned, isNamedAsOwn, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import { decideUnpublish } from "../../volume/rules/publish.ts";
import { assertVolumeGone, loadDisk, notFound } from "../load.ts";
import { fits, outdateInDoubt, writeRecord } from "../change.ts";
import { isOlderThan, latestEpoch, latestEpochIfReported } from "../records/epochs.ts";
import { withdrawExport, withdrawKnown, withdrawOlder } from "./withdrawal.ts";
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
  if (await unpublishKnown(call, id, nodeId)) return;
  const { view, stored } = await loadDisk(call, id, "unpublish");
  const volume = stored === undefined || isNobodys(deps, stored)
    ? undefined
    : getOwned(stored, deps.settings.cluster, "unpublish");
  if (volume === undefined || isAnothers(volume, deps.settings.cluster)) {
    await assertInNoOtherSlot(call, id, nodeId);
    if (volume !== undefined) assertShownOrGone(call, id, view);
    return deps.misplaced?.assertNotSeen(deps.settings.cluster, id, "unpublish");
  }
  await takeFrom(call, volume, nodeId);
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

/** Takes a volume, as it was just read, from a node, or from all of them. */
export async function takeFrom(call: ControllerCall, volume: OwnedVolume, nodeId: string): Promise<void> {
  const { id } = volume.stored;
  if (!usesOwnImage(volume, call.settings.cluster)) await assertInNoOtherSlot(call, id, nodeId);
  const decision = decideUnpublish(volume, nodeId);
  const isStep = decision.action === "withdraw" || decision.action === "leave";
  const latest = await (isStep ? latestEpochIfReported : latestEpoch)(call, volume) ?? 0;
  if (isOlderThan(latest, volume)) {
    const { record } = await withdrawOlder(call, volume, latest, "unpublish");
    call.projection.show(id, record);
  } else if (decision.action === "done" || decision.action === "not-holder") {
    await outdateInDoubt(call, "unpublish", volume);
    call.projection.show(id, volume.record);
    if (decision.action === "done") return;
    const holders = nodeIdsOf(decision.remaining);
    const fields = { volume: id, node: nodeId, holders, requestId: call.context.requestId };
    call.notes.warn("the node does not hold the volume; nothing changed", fields);
  } else if (decision.action === "withdraw") {
    const { record } = await withdrawExport(call, volume, "unpublish");
    call.projection.show(id, record);
    const nodeIds = nodeIdsOf(volume.record.holders);
    // A call that names a node says only that this node does without the volume from now on.
    if (nodeId === "" && nodeIds.length > 0) {
      call.events.occurred({ kind: "fenced", volumeId: id, nodeIds });
    }
  } else if (decision.action === "leave") {
    await detachNode(call, volume, { ...decision, nodeId });
    call.projection.show(id, decision.record);
  }
}

/** Takes a volume from its only holder, as this process remembers it; false when it has to be read first. */
async function unpublishKnown(call: ControllerCall, id: string, nodeId: string): Promise<boolean> {
  const stored = call.memory.known.get(id);
  if (stored === undefined) return false;
  const known = getOwned(stored, call.settings.cluster, "unpublish");
  const { holders } = known.record;
  if (holders.length !== 1 || holders[0]!.nodeId !== nodeId) return false;
  if (isOlderThan(await latestEpochIfReported(call, known) ?? 0, known)) return false;
  const withdrawn = await withdrawKnown(call, known, "unpublish");
  if (withdrawn === undefined) return false;
  call.projection.show(id, withdrawn.record);
  return true;
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

/**
 * Refuses to call a volume detached whose disk a person has given another slot: its export is on as before. The image of
 * one that this driver made would be found by its name; that of an imported one has any name. One command.
 *
 * @throws {VolumeError} precondition when the node has it by such a disk; unavailable while it may come back late
 */
async function assertInNoOtherSlot(call: ControllerCall, id: string, nodeId: string): Promise<void> {
  const inventory = await call.store.inventory(call.context);
  const { cluster, settleMs } = call.settings;
  assertSettled(inventory, settleMs);
  for (const stored of inventory.volumes) {
    if (stored.id === id || !stored.exported) continue;
    const isIts = isDiskOf(stored, id, cluster);
    // It may be its disk, as far as anybody can tell.
    if (isIts === undefined) assertReadable(stored, "unpublish");
    if (isIts !== true) continue;
    // The record may be lost or damaged. It still counts while it does not name another cluster, whose ids may be the same.
    if ((clusterOfComment(stored.comment) ?? cluster) !== cluster) continue;
    const ownership = judgeOwnership(stored, cluster);
    if (
      ownership.state === "owned" &&
      decideUnpublish(ownership.volume, nodeId).action === "not-holder"
    ) continue;
    throw new VolumeError(
      "precondition",
      `Cannot unpublish the volume because its disk was given another slot and is still exported: volume=${id} ` +
        `slot=${stored.id} nqn=${stored.exportNqn}; give it its slot back`,
    );
  }
}

/**
 * The volume that is exported under that name in some epoch, or by the legacy driver, which had no epochs; undefined for
 * any other name.
 */
function volumeOfName(nqn: string): string | undefined {
  const [id, last = ""] = nqn.split(":").slice(-2);
  if (isLegacyId(last)) return last;
  return parseEpoch(last) === undefined ? undefined : id;
}

/**
 * Whether a disk in any slot is that volume's, by the name of its export. Where that tells no volume, its image or its
 * record may. Undefined when neither does.
 */
function isDiskOf(stored: StoredVolume, id: string, cluster: string): boolean | undefined {
  const named = volumeOfName(stored.exportNqn) ?? volumeOfImage(stored.imagePath, cluster);
  if (named !== undefined) return named === id;
  const ownership = judgeOwnership(stored, cluster);
  if (ownership.state !== "owned" || !isImported(ownership.volume.record)) return undefined;
  return ownership.volume.record.name === nameDigest(id);
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
  const { stored } = await loadDisk(call, id, "withdraw");
  if (stored === undefined) throw notFound("withdraw", id);
  const volume = getOwned(stored, deps.settings.cluster, "withdraw");
  if (isAnothers(volume, deps.settings.cluster)) {
    throw new VolumeError(
      "precondition",
      `Cannot withdraw the volume because the disk of another volume is in its slot: volume=${id} ` +
        `path=${stored.imagePath} nqn=${stored.exportNqn}; give the disks their slots back`,
    );
  }
  await takeFrom(call, volume, "");
  return nodeIdsOf(volume.record.holders);
}

/** Who leaves a volume, and who goes on holding it. */
interface DetachingNode {
  readonly nodeId: string;
  /** The record without the node. */
  readonly record: VolumeRecord;
  readonly remaining: readonly Holder[];
  readonly unfenced: UnfencedNode | undefined;
}

/**
 * Takes a volume from one of several nodes. The others go on under the same NQN, so that nothing fences the one that leaves: it
 * is reported, and noted unless its kubelet says that it has given the volume up. One command.
 */
async function detachNode(
  call: ControllerCall,
  volume: OwnedVolume,
  { nodeId, record, remaining, unfenced }: DetachingNode,
): Promise<void> {
  const { stored } = volume;
  const others = nodeIdsOf(remaining);
  const detached = unfenced && { ...unfenced, volumeId: stored.id };
  const reason = detached && await call.detachedNodes.reasonAgainst(detached, call.context.signal);
  const noted = reason === undefined ? record : withUnfenced(volume, record, unfenced);
  await writeRecord(call, "unpublish", volume, noted, () => true);
  call.events.occurred({ kind: "leaver-unfenced", volumeId: stored.id, nodeId, remaining: others });
  const fields = { volume: stored.id, node: nodeId, holders: others, requestId: call.context.requestId };
  call.notes.warn(
    "the volume is still exported for its other holder: the node that left is not fenced",
    fields,
  );
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
