import { canShutOut, hostsOf, sameHosts } from "../../volume/model/host_list.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { Holder, OwnedVolume, VolumeRecord } from "../../volume/model/record.ts";
import { formatComment } from "../../volume/model/record.ts";
import { changeVolume } from "../change.ts";
import type { ControllerWorld } from "../deps.ts";

/** Who leaves a volume, and who goes on holding it. */
export interface Leaving {
  readonly nodeId: string;
  /** The record without the node. */
  readonly record: VolumeRecord;
  readonly remaining: readonly Holder[];
}

/**
 * Takes a volume from one of several nodes. The others go on under the same NQN, so that the one that leaves is fenced
 * only where the router goes by a list of hosts: it is shortened, and the export bounced, as a list alone does not cut off
 * whoever is connected. Elsewhere it is reported. One command.
 */
export async function leaveVolume(
  world: ControllerWorld,
  volume: OwnedVolume,
  { nodeId, record, remaining }: Leaving,
  context: CallContext,
): Promise<void> {
  const { stored } = volume;
  const others = remaining.map((holder) => holder.nodeId);
  const comment = formatComment({ ...volume.comment, record }, world.settings.maxCommentBytes);
  const hosts = canShutOut(volume, world.settings.allowHost, remaining) ? hostsOf(remaining) : undefined;
  if (hosts === undefined) {
    const left = (after: StoredVolume) => after.comment === comment;
    await changeVolume(world, "unpublish", stored, { comment }, left, context);
  } else {
    const { exportNqn } = stored;
    const change = { comment, allowedHosts: hosts, bounce: true };
    const left = (after: StoredVolume) =>
      after.comment === comment && after.exported && after.exportNqn === exportNqn;
    const after = await changeVolume(world, "unpublish", stored, change, left, context);
    if (sameHosts(after.allowedHosts, hosts)) {
      world.events.happened({ kind: "fenced", volumeId: stored.id, nodeIds: [nodeId], remaining: others });
      return;
    }
  }
  world.events.happened({ kind: "leaver-unfenced", volumeId: stored.id, nodeId, remaining: others });
  world.notes.warn(
    "the volume goes on being exported for its other holder: the node that left is not fenced",
    {
      volume: stored.id,
      node: nodeId,
      holders: others,
      requestId: context.requestId,
    },
  );
}
