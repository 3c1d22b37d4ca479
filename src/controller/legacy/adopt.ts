import { VolumeError } from "../../volume/errors.ts";
import { nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { LegacyClaim } from "../../volume/rules/legacy_migration.ts";
import { readAt } from "../load.ts";
import { migrate } from "./migrate.ts";
import type { ControllerDeps } from "../deps.ts";

/**
 * Takes a volume of the legacy driver over by a person's word on what it is and who has it. Nothing but the comment of its
 * disk changes; once it is taken over, the same word again changes nothing. Two commands.
 *
 * @returns whether it was taken over now, and not before
 * @throws {VolumeError} not-found, unavailable; precondition on any doubt about the disk, or when it is known to be otherwise
 */
export async function adoptVolume(
  deps: ControllerDeps,
  id: string,
  claim: LegacyClaim,
  context: CallContext,
): Promise<boolean> {
  const call = { ...deps, context };
  const view = await readAt(call, id, "adopt");
  const ownership = judgeOwnership(view.volume, deps.settings.cluster);
  if (ownership.state === "owned") {
    assertAsClaimed(ownership.volume, claim);
    return false;
  }
  if (ownership.state === "earlier-driver" && claim.holders.length > 0 && !view.volume.exported) {
    throw new VolumeError(
      "precondition",
      `Cannot adopt the volume because it is not exported, so no node can have it: volume=${id}; omit --node`,
    );
  }
  await migrate(call, view, view.volume, claim);
  return true;
}

function assertAsClaimed({ stored, record }: OwnedVolume, { holders }: LegacyClaim): void {
  const known = nodeIdsOf(record.holders).toSorted();
  const claimed = nodeIdsOf(holders).toSorted();
  if (known.join() === claimed.join()) return;
  throw new VolumeError(
    "precondition",
    `Cannot adopt the volume because it was already adopted for other nodes: volume=${stored.id} ` +
      `nodes=${known.join(", ") || "none"} claimed=${claimed.join(", ") || "none"}`,
  );
}
