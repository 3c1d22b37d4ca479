import { poolOf } from "../../volume/model/ids/ids.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { isImported } from "../../volume/model/sources.ts";
import type { ControllerCall } from "../deps.ts";
import { heldBytes } from "../load.ts";
import { fits } from "../records/comment.ts";
import type { Decision } from "../records/loop.ts";
import { growth } from "../records/steps.ts";
import type { View } from "../records/view.ts";

/**
 * Grows disks again whose router lost its last seconds after the volume had grown: the image has kept the size that the
 * PersistentVolume names, and that a file system may have. An export that is on, as of a publish that was given up, stays on where
 * this router grows disks so. A router that grows no disk keeps its volume from no node: a call asks it once, and once more when
 * the export is off.
 */
export class ForgottenGrowths {
  readonly #call: ControllerCall;
  /** Whether the disk was exported when the router took the size and did not grow it; undefined where it did not do that. */
  #refusedExported: boolean | undefined;

  constructor(call: ControllerCall) {
    this.#call = call;
  }

  /** The step that grows the disk to its image, before the rule is asked again; undefined where nothing was forgotten. */
  again(volume: OwnedVolume, view: View): Decision<never> | undefined {
    const { settings, notes } = this.#call;
    const { id, imagePath, sizeBytes, exported } = volume.stored;
    const imageBytes = heldBytes(volume.stored, view);
    const canGrow = exported !== this.#refusedExported && (!exported || settings.growth === "live");
    if (imageBytes <= sizeBytes || !canGrow || isImported(volume.record)) return undefined;
    const room = { mountPoint: poolOf(imagePath), bytes: imageBytes - sizeBytes };
    const step = { ...growth(this.#call, volume, imageBytes), room };
    if (!fits(volume, step.record)) return undefined;
    const next = (after: OwnedVolume) => {
      const isRefused = after.stored.sizeBytes === sizeBytes;
      if (isRefused) this.#refusedExported = exported;
      const what = isRefused
        ? "the router grows no disk to its image: the volume is published in the size of its disk"
        : "the router forgot that the volume had grown: its disk was grown again";
      notes.warn(what, { volume: id, size: String(sizeBytes), image: String(imageBytes) });
      return "again" as const;
    };
    return { step, next };
  }
}
