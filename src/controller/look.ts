import { assertGone } from "../volume/absence.ts";
import { VolumeError } from "../volume/errors.ts";
import { imagePath } from "../volume/ids.ts";
import { assertNotForeign, assertOwned, type OwnedVolume } from "../volume/ownership.ts";
import type { CallContext, StoredVolume, VolumeView } from "../volume/ports.ts";
import type { ControllerWorld } from "./world.ts";

/** Where the image of a volume of this cluster can lie, in every allowed folder. */
export function imagePaths(world: ControllerWorld, id: string): readonly string[] {
  return world.settings.basePaths.map((base) => imagePath(base, id, world.settings.cluster));
}

/** A volume of this cluster together with the look that showed it. */
export interface Looked {
  readonly view: VolumeView;
  /** Undefined only when the volume is provably gone. */
  readonly volume: OwnedVolume | undefined;
}

/**
 * Looks at a volume for a call that is going to change it. One command.
 *
 * @throws {VolumeError} precondition when it is not this cluster's; unavailable when it is not there and that proves
 * nothing
 */
export async function lookForChange(
  world: ControllerWorld,
  id: string,
  verb: string,
  context: CallContext,
): Promise<Looked> {
  const view = await world.store.view(id, imagePaths(world, id), context);
  assertNotForeign(view.foreign, verb);
  if (view.volume === undefined) {
    assertGone(id, view, world.settings.basePaths, world.settings.settleMs);
    return { view, volume: undefined };
  }
  return { view, volume: assertOwned(view.volume, world.settings.cluster, verb) };
}

/**
 * Refuses a volume whose image another disk uses too.
 *
 * @throws {VolumeError} precondition when there is such a disk
 */
export function assertNotShared(id: string, view: VolumeView, verb: string): void {
  const sharer = view.sharers[0];
  if (sharer === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume as another disk uses its image: volume=${id} disk=${sharer.id} path=${sharer.imagePath}`,
  );
}

/**
 * Refuses a volume whose disk uses another file than its own. A disk that was copied on the router carries the record of
 * the one it was copied from, and would be a second way to that one's image.
 *
 * @throws {VolumeError} precondition when it does
 */
export function assertOwnImage(world: ControllerWorld, stored: StoredVolume, verb: string): void {
  const { id, imagePath } = stored;
  if (imagePath.endsWith(`/${id}.${world.settings.cluster}.img`)) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume as its disk uses a file of another name: volume=${id} path=${imagePath}; ` +
      "a person has to look at what that file is",
  );
}

/** The error for a volume that is provably not there. */
export function notFound(verb: string, id: string): VolumeError {
  return new VolumeError("not-found", `Cannot ${verb} the volume as there is none: volume=${id}`);
}
