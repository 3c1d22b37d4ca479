import type { StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import type { ImportClaim } from "../../volume/rules/import.ts";
import { loadDisk, loadForChange, withImage } from "../load.ts";
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

/**
 * Reads a volume, whosever it is. One command; one more when the legacy driver made it.
 *
 * @throws {VolumeError} precondition when it leaves a doubt; unavailable when it is not there and that proves nothing
 */
export async function readView(call: ControllerCall, id: string, verb: string): Promise<View> {
  const { view } = await loadDisk(call, id, verb);
  return { ...view, id, isAssumed: false };
}

/**
 * Reads a volume of this cluster for whoever exports it. One command; one more when the legacy driver made it or it was imported,
 * two more when it is imported now.
 *
 * @param claim what a disk without a record is to be imported as; without it such a disk is left alone
 * @throws {VolumeError} as {@linkcode readView} does; precondition when it is not this cluster's, or its image is not there
 */
export async function readOwnView(
  call: ControllerCall,
  id: string,
  verb: string,
  claim?: ImportClaim,
): Promise<View> {
  const loaded = await loadForChange(call, id, verb, claim);
  const { view, volume } = await withImage(call, loaded, verb);
  return { ...view, id, isAssumed: false, volume: volume?.stored };
}
