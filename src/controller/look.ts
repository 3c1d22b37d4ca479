import { assertGone } from "../volume/absence.ts";
import { VolumeError } from "../volume/errors.ts";
import { baseOf, isImageOf, stemOf } from "../volume/layout.ts";
import { assertNotForeign, assertOwned, type OwnedVolume } from "../volume/ownership.ts";
import type { CallContext, StoredVolume, VolumeView } from "../volume/ports.ts";
import { takeOverFirst } from "./takeover.ts";
import type { ControllerWorld } from "./world.ts";

/** What the names of all files of a volume of this cluster begin with. */
export function ownStem(world: ControllerWorld, id: string): string {
  return stemOf(id, world.settings.cluster);
}

/** A volume of this cluster together with the look that showed it. */
export interface Looked {
  readonly view: VolumeView;
  /** Undefined only when the volume is provably gone. */
  readonly volume: OwnedVolume | undefined;
}

/**
 * Looks at a volume for a call that is going to change it. One command; one more when the earlier driver made it.
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
  const stem = ownStem(world, id);
  const view = await world.store.view(id, stem, context);
  assertNotForeign(view.foreign, verb);
  if (view.volume === undefined) {
    assertGone(id, stem, view, world.settings.basePaths, world.settings.settleMs);
    return { view, volume: undefined };
  }
  const stored = await takeOverFirst(world, view, view.volume, context);
  return { view: { ...view, volume: stored }, volume: assertOwned(stored, world.settings.cluster, verb) };
}

/**
 * Refuses a volume whose image another disk uses too.
 *
 * @throws {VolumeError} precondition when there is such a disk
 */
export function assertNotShared(world: ControllerWorld, id: string, view: VolumeView, verb: string): void {
  const stem = ownStem(world, id);
  const isOwn = ({ imagePath }: StoredVolume) =>
    imagePath === view.volume?.imagePath ||
    (isImageOf(imagePath, stem) && world.settings.basePaths.includes(baseOf(imagePath, stem)));
  const sharer = view.sharers.find(isOwn);
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
  if (isImageOf(imagePath, ownStem(world, id))) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume as its disk uses a file of another name: volume=${id} path=${imagePath}; ` +
      "a person has to look at what that file is",
  );
}

/** The folder that a volume was put into. */
export function ownBase(world: ControllerWorld, stored: StoredVolume): string {
  return baseOf(stored.imagePath, ownStem(world, stored.id));
}

/** The error for a volume that is provably not there. */
export function notFound(verb: string, id: string): VolumeError {
  return new VolumeError("not-found", `Cannot ${verb} the volume as there is none: volume=${id}`);
}
