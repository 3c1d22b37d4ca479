import type { ClusterAttachment } from "../../volume/ports/cluster_ports.ts";
import { formatEpoch } from "../../volume/model/epoch.ts";
import { assertFences, isExportedAsRecorded, nqnOf } from "../../volume/rules/publish.ts";
import { type OwnedVolume, rewritten } from "../../volume/model/record.ts";
import { assertImageUsable, lookForChange, withImage } from "../load.ts";
import { exportAs } from "../attachments/publish.ts";
import type { ControllerCall } from "../deps.ts";

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
  const looked = await lookForChange(call, id, "restore");
  const { view, volume } = await withImage(call, looked, "restore");
  if (volume === undefined || volume.stored.comment !== seen.stored.comment) return false;
  if (isExportedAsRecorded(volume) || volume.record.epoch === undefined) return false;
  assertImageUsable(call, volume, view, "restore");
  assertFences(id, view, call.settings.allowUnfenced);
  const { epoch } = volume.record;
  const known = attachments.map(({ publishContext }) => publishContext)
    .find((publish) => publish["epoch"] === formatEpoch(epoch));
  const nqn = nqnOf(volume, epoch, call.settings.nqnPrefix, view);
  if (known?.["nqn"] !== undefined && known["nqn"] !== nqn) {
    const fields = { volume: id, nqn, known: known["nqn"], requestId: call.context.requestId };
    call.notes.warn(
      "an export is not restored as its nodes know it by another NQN than this driver would give it",
      fields,
    );
    return false;
  }
  const port = Number(known?.["nvmePort"]) || volume.stored.exportPort || call.settings.nvmePort;
  // A withdrawal that the router runs late would take it away again.
  const unsettled = call.unsettled.mayStillCome(id, volume.stored.comment);
  const record = unsettled ? rewritten(volume.record) : volume.record;
  const restored = await exportAs(call, volume, view, { record, port, hosts: undefined });
  call.projection.show(id, restored.record);
  return true;
}
