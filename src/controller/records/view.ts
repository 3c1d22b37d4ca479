import { filePrefixOf } from "../../volume/model/image_names.ts";
import type { StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import type { ControllerCall } from "../deps.ts";

/** What a call knows of a volume when it decides. */
export interface View extends VolumeView {
  readonly id: string;
  /**
   * Whether it is remembered, and not read. It has the form of a read then, but each fact in it is a claim: the router has to
   * confirm it, and nobody is answered by it.
   */
  readonly isAssumed: boolean;
  /** Every disk; undefined where they were not read. */
  readonly all?: readonly StoredVolume[];
  /** The disk of the volume that it is to be made from; undefined where none is, or none was read. */
  readonly source?: StoredVolume | undefined;
}

/** A volume as this process remembers it; undefined where it does not, or where a change of it may still come. */
export function assumedView({ memory, store }: ControllerCall, id: string): View | undefined {
  const volume = memory.known.get(id);
  if (volume === undefined || memory.inDoubt.mayStillApply(id, volume.comment)) return undefined;
  const image = { path: volume.imagePath, sizeBytes: volume.sizeBytes, directory: false };
  const claimed = { foreign: undefined, sharers: [], files: [image], upMs: Infinity };
  return { id, isAssumed: true, volume, pools: store.lastPools, ...claimed };
}

/** Reads what is in a slot, whosever it is. One command. */
export async function readSlot({ settings, store, context }: ControllerCall, id: string): Promise<View> {
  const view = await store.view(id, filePrefixOf(id, settings.cluster), context);
  return { ...view, id, isAssumed: false };
}
