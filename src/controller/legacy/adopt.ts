import {
  type AccessMode,
  kindName,
  parseRecordedCapabilities,
  sameKind,
} from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import { nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { assertOwned, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { type LegacyClaim, modesOfVolumes } from "../../volume/rules/legacy_migration.ts";
import { readAt } from "../reads.ts";
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
  const { cluster } = deps.settings;
  const { volume: stored } = view;
  const ownership = judgeOwnership(stored, cluster);
  if (ownership.state === "owned") {
    assertAsClaimed(assertOwned(stored, cluster, "adopt"), claim);
    return false;
  }
  if (ownership.state === "earlier-driver" && claim.holders.length > 0 && !stored.exported) {
    throw refused(`it is not exported, so no node can have it: volume=${id}; omit --node`);
  }
  await migrate(call, view, claim);
  return true;
}

/** @throws {VolumeError} precondition when the record says something else, which a repeated word does not change */
function assertAsClaimed({ stored, record }: OwnedVolume, { kind, mode, holders }: LegacyClaim): void {
  const { id } = stored;
  const known = nodeIdsOf(record.holders).toSorted();
  const claimed = nodeIdsOf(holders).toSorted();
  if (known.join() !== claimed.join()) {
    throw refused(
      `it was already adopted for other nodes: volume=${id} nodes=${known.join(", ") || "none"} ` +
        `claimed=${claimed.join(", ") || "none"}`,
    );
  }
  const recorded = parseRecordedCapabilities(record.capabilities);
  const isSame = recorded !== undefined && sameKind(recorded.kind, kind) && recorded.modes.includes(mode);
  if (!isSame) {
    const what = recorded === undefined
      ? record.capabilities
      : `${kindName(recorded.kind)}, ${recorded.modes.map(accessModeOf).join(" and ")}`;
    throw refused(
      `it was already adopted as something else: volume=${id} is="${what}" ` +
        `claimed="${kindName(kind)}, ${accessModeOf(mode)}"; nothing was changed`,
    );
  }
  const other = holders.find((holder) =>
    record.holders.some(({ nodeId, readOnly }) => nodeId === holder.nodeId && readOnly !== holder.readOnly)
  );
  if (other === undefined) return;
  throw refused(
    `it was already adopted ${other.readOnly ? "writable" : "read-only"}: volume=${id} ` +
      `node=${other.nodeId} claimed=${other.readOnly ? "read-only" : "writable"}; nothing was changed`,
  );
}

/** An access mode in Kubernetes' words, where it has one. */
function accessModeOf(mode: AccessMode): string {
  return Object.entries(modesOfVolumes).find(([, one]) => one === mode)?.[0] ?? mode;
}

function refused(reason: string): VolumeError {
  return new VolumeError("precondition", `Cannot adopt the volume because ${reason}`);
}
