import { parseRecordedCapabilities } from "../model/capabilities.ts";
import {
  type Holder,
  type OwnedVolume,
  type UnfencedNode,
  unfencedNode,
  type VolumeRecord,
} from "../model/record.ts";
import { isOfEarlierEpoch, isReadOnlyUse } from "./publish.ts";

/** The decision on an unpublish. */
export type UnpublishDecision =
  /** No holder is left, or the record is older than the export: withdraw the export, and verify. */
  | { readonly action: "withdraw" }
  /** Others are left: the export stays for them. */
  | {
    readonly action: "leave";
    readonly record: VolumeRecord;
    readonly remaining: readonly Holder[];
    /** To be recorded, unless it is known to have given up the volume; undefined for a node that may not write. */
    readonly unfenced: UnfencedNode | undefined;
  }
  /** The node does not hold it, others do: nothing changes. */
  | { readonly action: "not-holder"; readonly remaining: readonly Holder[] }
  /** It has no holder and the export is off: nothing to do. */
  | { readonly action: "done" };

/**
 * Decides what unpublishing a volume from a node takes.
 *
 * @param nodeId the node, or "" for all of them (CSI specification, ControllerUnpublishVolumeRequest.node_id)
 */
export function decideUnpublish(volume: OwnedVolume, nodeId: string): UnpublishDecision {
  if (isOfEarlierEpoch(volume)) return { action: "withdraw" };
  const { record, stored } = volume;
  const remaining = nodeId === "" ? [] : record.holders.filter((holder) => holder.nodeId !== nodeId);
  if (remaining.length > 0) {
    const left = record.holders.find((holder) => !remaining.includes(holder));
    if (left === undefined) return { action: "not-holder", remaining };
    const unfenced = left.mode === "multi-node-multi-writer" ? unfencedNode(left) : undefined;
    return { action: "leave", record: withoutNode(record, remaining), remaining, unfenced };
  }
  if (record.holders.length === 0 && !stored.exported) return { action: "done" };
  return { action: "withdraw" };
}

/**
 * Marks the record when the holder that began the read-only epoch of a file system leaves: the next one in the list
 * only joined.
 */
function withoutNode(record: VolumeRecord, remaining: readonly Holder[]): VolumeRecord {
  const [first] = record.holders;
  const began = first !== undefined && !remaining.includes(first) &&
    isReadOnlyUse(first.mode, first.readOnly) &&
    parseRecordedCapabilities(record.capabilities)?.kind.access === "mount";
  return { ...record, holders: remaining, ...(began ? { firstHolderLeft: true as const } : {}) };
}
