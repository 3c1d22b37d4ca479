import { canShutOut, hostsOf, sameHosts } from "../../volume/model/host_list.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { type Holder, nodeIdsOf, type OwnedVolume, type VolumeRecord } from "../../volume/model/record.ts";
import { writeRecord } from "../change.ts";
import type { ControllerCall } from "../deps.ts";

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
  call: ControllerCall,
  volume: OwnedVolume,
  { nodeId, record, remaining }: Leaving,
): Promise<void> {
  const { stored } = volume;
  const others = nodeIdsOf(remaining);
  const hosts = canShutOut(volume, call.settings.allowHost, remaining) ? hostsOf(remaining) : undefined;
  if (hosts === undefined) {
    await writeRecord(call, "unpublish", volume, record, () => true);
  } else {
    const { exportNqn } = stored;
    const goesOn = (after: StoredVolume) => after.exported && after.exportNqn === exportNqn;
    const change = { allowedHosts: hosts, bounce: true };
    const after = await writeRecord(call, "unpublish", volume, record, goesOn, change);
    if (sameHosts(after.stored.allowedHosts, hosts)) {
      call.events.happened({ kind: "fenced", volumeId: stored.id, nodeIds: [nodeId], remaining: others });
      return;
    }
  }
  call.events.happened({ kind: "leaver-unfenced", volumeId: stored.id, nodeId, remaining: others });
  const fields = { volume: stored.id, node: nodeId, holders: others, requestId: call.context.requestId };
  call.notes.warn(
    "the volume goes on being exported for its other holder: the node that left is not fenced",
    fields,
  );
}
