import type { ClusterAttachment } from "../../volume/ports/cluster_view.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import { isExportedAsRecorded, nqnOf } from "../../volume/rules/publish.ts";
import { isOfEpoch } from "../../volume/rules/reconcile.ts";
import { assertImageUsable, readOwnView } from "../load.ts";
import { isOlderThan, latestEpoch } from "../records/epochs.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { exported } from "../records/steps.ts";
import type { View } from "../records/view.ts";
import type { ControllerCall } from "../deps.ts";

/** What came of it; without a volume nothing is to be restored any more. */
interface Restored {
  readonly volume?: OwnedVolume;
}

/**
 * Turns the export of a volume on again that nodes hold, under the NQN and the port that they know. Two commands; one when
 * that is not called for any more. Answers whether it was done.
 *
 * @param seen the volume as it was when that was decided
 * @throws {VolumeError} precondition, unavailable, busy
 */
export async function restoreExport(
  call: ControllerCall,
  seen: OwnedVolume,
  attachments: readonly ClusterAttachment[],
): Promise<boolean> {
  const { id } = seen.stored;
  const read = () => readOwnView(call, id, "restore");
  const rule = (view: View) => decideRestoring(call, view, seen, attachments);
  const about = { id, verb: "restore", first: await read(), read };
  const { volume } = await changeByRule(call, about, rule);
  if (volume !== undefined) call.projection.show(id, volume.record);
  return volume !== undefined;
}

async function decideRestoring(
  call: ControllerCall,
  view: View,
  seen: OwnedVolume,
  attachments: readonly ClusterAttachment[],
): Promise<Decision<Restored>> {
  const nothing = { answer: {} };
  const { id, volume: stored } = view;
  if (stored === undefined || stored.comment !== seen.stored.comment) return nothing;
  const { cluster, nqnPrefix, nvmePort } = call.settings;
  const volume = assertOwned(stored, cluster, "restore");
  const { epoch } = volume.record;
  if (isExportedAsRecorded(volume) || epoch === undefined) return nothing;
  if (isOlderThan(await latestEpoch(call, volume), volume)) return nothing;
  assertImageUsable(call, volume, view, "restore");
  const known = attachments.find((one) => isOfEpoch(one, epoch))?.published;
  const nqn = nqnOf(volume, epoch, nqnPrefix);
  if (known?.nqn !== undefined && known.nqn !== nqn) {
    const fields = { volume: id, nqn, known: known.nqn, requestId: call.context.requestId };
    call.notes.warn("cannot restore an export because its nodes know it under another NQN", fields);
    return nothing;
  }
  const port = known?.port || stored.exportPort || nvmePort;
  const step = exported(call, "continue", volume, { record: volume.record, port });
  return { step, next: (after) => ({ volume: after }) };
}
