import { VolumeError } from "../../volume/errors.ts";
import { holderOf, isSameNode, nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import type { PublishFacts, PublishRequest } from "../../volume/rules/publish.ts";
import type { ControllerCall } from "../deps.ts";

/**
 * Why a node that has left may still write, in words; "" when its kubelet says that it has given the volume up. Asks nobody for
 * a node that may join whatever the answer is.
 */
export async function reasonStillUnfenced(
  call: ControllerCall,
  volume: OwnedVolume,
  { nodeId, machine }: PublishRequest & Pick<PublishFacts, "machine">,
): Promise<string> {
  const { stored, record: { unfenced, holders } } = volume;
  if (unfenced === undefined || holders.length === 0 || holderOf(volume.record, nodeId) !== undefined) {
    return "";
  }
  if (isSameNode(unfenced, nodeId, machine)) return "";
  const detached = { ...unfenced, volumeId: stored.id };
  return await call.detachedNodes.reasonAgainst(detached, call.context.signal) ?? "";
}

/**
 * Keeps a third writer out where the router has gone back to an earlier record of the same epoch, which lacks a node that has
 * the volume: one that would join, or that has left since and is on that record.
 *
 * @throws {VolumeError} published-elsewhere when the cluster shows such a node; unavailable when it does not answer
 */
export async function assertNoHolderMissing(
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
export async function assertPair(call: ControllerCall, volume: OwnedVolume, nodeId: string): Promise<void> {
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
