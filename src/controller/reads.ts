import { assertNotForeign, assertOwned } from "../volume/rules/ownership.ts";
import type { StoredVolume } from "../volume/model/inventory.ts";
import type { OwnedVolume } from "../volume/model/record.ts";
import { assertVolumeGone, notFound, ownFilePrefix, readView } from "./load.ts";
import { readSlot, type View } from "./records/view.ts";
import type { ControllerCall } from "./deps.ts";

/** Reads every disk, and all that there is of a volume: only that tells exactly how much room there is. */
export async function readEvery(call: ControllerCall, id: string): Promise<View> {
  const wanted = { id, filePrefix: ownFilePrefix(call, id), folder: "" };
  const view = await call.promised.learnFrom(() => call.store.createView(wanted, call.context));
  const { volumes: all } = view;
  return { ...view, id, isAssumed: false, all, volume: all.find((one) => one.id === id), sharers: [] };
}

/**
 * Reads a disk that is there, whosever it is. One command.
 *
 * @throws {VolumeError} not-found, unavailable; precondition when it is not file-backed
 */
export async function readAt(
  call: ControllerCall,
  id: string,
  verb: string,
): Promise<View & { readonly volume: StoredVolume }> {
  const view = await readSlot(call, id);
  assertNotForeign(view.foreign, verb);
  if (view.volume !== undefined) return { ...view, volume: view.volume };
  assertVolumeGone(call, id, view);
  throw notFound(verb, id);
}

/**
 * Reads a volume of this cluster, whether there is one or not, as {@linkcode readView} does.
 *
 * @returns what was read, and the volume; undefined only when it is provably gone
 * @throws {VolumeError} as {@linkcode readView} does; precondition when it is not this cluster's
 */
export async function readOwned(
  call: ControllerCall,
  id: string,
  verb: string,
): Promise<{ readonly view: View; readonly volume: OwnedVolume | undefined }> {
  const view = await readView(call, id, verb);
  return { view, volume: view.volume && assertOwned(view.volume, call.settings.cluster, verb) };
}
