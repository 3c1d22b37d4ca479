import { assertGone } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import { nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { assertNotForeign, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { VolumeView } from "../../volume/model/inventory.ts";
import type { TakeoverClaim } from "../../volume/rules/legacy_migration.ts";
import { notFound, ownStem } from "../load.ts";
import { takeOver } from "./migrate.ts";
import type { ControllerCall, ControllerWorld } from "../deps.ts";

/**
 * Takes a volume of the earlier driver over by a person's word on what it is and who has it. Nothing but the comment of its
 * disk changes; once it is taken over, the same word again changes nothing. Two commands.
 *
 * @returns whether it was taken over now, and not before
 * @throws {VolumeError} not-found, unavailable; precondition on any doubt about the disk, or when it is known to be otherwise
 */
export async function adoptVolume(
  world: ControllerWorld,
  id: string,
  claim: TakeoverClaim,
  context: CallContext,
): Promise<boolean> {
  const call = { ...world, context };
  const view = await lookAt(call, id, "adopt");
  const ownership = judgeOwnership(view.volume, world.settings.cluster);
  if (ownership.state === "owned") {
    assertAsClaimed(ownership.volume, claim);
    return false;
  }
  if (ownership.state === "earlier-driver" && claim.holders.length > 0 && !view.volume.exported) {
    throw new VolumeError(
      "precondition",
      `Cannot adopt the volume as a node cannot have what is not exported: volume=${id}; leave --node out`,
    );
  }
  await takeOver(call, view, view.volume, claim);
  return true;
}

/**
 * A look at a disk that is there, whosever it is.
 *
 * @throws {VolumeError} not-found, unavailable; precondition when it is not file-backed
 */
export async function lookAt(
  call: ControllerCall,
  id: string,
  verb: string,
): Promise<VolumeView & { readonly volume: NonNullable<VolumeView["volume"]> }> {
  const { basePaths, settleMs } = call.settings;
  const stem = ownStem(call, id);
  const view = await call.store.view(id, stem, call.context);
  assertNotForeign(view.foreign, verb);
  if (view.volume !== undefined) return { ...view, volume: view.volume };
  assertGone(id, stem, view, basePaths, settleMs);
  throw notFound(verb, id);
}

function assertAsClaimed({ stored, record }: OwnedVolume, { holders }: TakeoverClaim): void {
  const known = nodeIdsOf(record.holders).toSorted();
  const claimed = nodeIdsOf(holders).toSorted();
  if (known.join() === claimed.join()) return;
  throw new VolumeError(
    "precondition",
    `Cannot adopt the volume as it was taken over before and others have it: volume=${stored.id} ` +
      `nodes=${known.join(", ") || "none"} claimed=${claimed.join(", ") || "none"}`,
  );
}
