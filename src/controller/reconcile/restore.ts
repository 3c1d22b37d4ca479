import { assertPoolMounted } from "../../volume/rules/absence.ts";
import type { ClusterAttachment } from "../../volume/ports/cluster_ports.ts";
import { formatEpoch } from "../../volume/model/epoch.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { assertFences, isExportedAsRecorded, nqnOf } from "../../volume/rules/publish.ts";
import { type OwnedVolume, rewritten } from "../../volume/model/record.ts";
import { assertNotShared, assertOwnImage, lookForChange, withImage } from "../load.ts";
import { exportAs } from "../attachments/publish.ts";
import type { ControllerWorld } from "../deps.ts";

/**
 * Turns the export of a volume on again that nodes hold, under the NQN and the port that they know. Two commands; one when
 * that is not called for any more. Answers whether it was done.
 *
 * @param seen the volume as it was when that was decided
 * @throws {VolumeError} precondition, unavailable, busy
 */
export async function restoreExport(
  world: ControllerWorld,
  seen: OwnedVolume,
  attachments: readonly ClusterAttachment[],
  context: CallContext,
): Promise<boolean> {
  const { id } = seen.stored;
  const looked = await lookForChange(world, id, "restore", context);
  const { view, volume } = await withImage(world, looked, "restore", context);
  if (volume === undefined || volume.stored.comment !== seen.stored.comment) return false;
  if (isExportedAsRecorded(volume) || volume.record.epoch === undefined) return false;
  assertNotShared(world, id, view, "restore");
  assertOwnImage(world, volume.stored, "restore");
  assertPoolMounted(view, volume.stored.imagePath);
  assertFences(id, view, world.settings.allowUnfenced);
  const { epoch } = volume.record;
  const known = attachments.map(({ publishContext }) => publishContext)
    .find((publish) => publish["epoch"] === formatEpoch(epoch));
  const nqn = nqnOf(volume, epoch, world.settings.nqnPrefix, view);
  if (known?.["nqn"] !== undefined && known["nqn"] !== nqn) {
    const fields = { volume: id, nqn, known: known["nqn"], requestId: context.requestId };
    world.notes.warn(
      "an export is not restored as its nodes know it by another NQN than this driver would give it",
      fields,
    );
    return false;
  }
  const port = Number(known?.["nvmePort"]) || volume.stored.exportPort || world.settings.nvmePort;
  // A withdrawal that the router runs late would take it away again.
  const unsettled = world.unsettled.mayStillCome(id, volume.stored.comment);
  const record = unsettled ? rewritten(volume.record) : volume.record;
  const restored = await exportAs(world, volume, view, { record, port, hosts: undefined }, context);
  world.projection.show(id, restored.record);
  return true;
}
