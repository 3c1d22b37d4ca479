import { VolumeError } from "../../volume/errors.ts";
import { remainingGraceMs, withdrawalSeconds } from "../../volume/rules/grace.ts";
import { hasOwnList, sameHosts } from "../../volume/model/host_list.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { RouterState, StoredVolume } from "../../volume/model/inventory.ts";
import { withdrawnRecord } from "../../volume/rules/publish.ts";
import { formatComment, type OwnedVolume, rewritten, type VolumeRecord } from "../../volume/model/record.ts";
import { changeVolume } from "../change.ts";
import type { ControllerWorld } from "../deps.ts";

/**
 * Withdraws the export of a volume that nobody holds any more, and returns it as read back: off, without holders, with
 * the time of the withdrawal. One command; a second one when the first was so slow that its recorded time is too early.
 */
export async function withdrawExport(
  world: ControllerWorld,
  volume: OwnedVolume,
  verb: string,
  context: CallContext,
): Promise<OwnedVolume> {
  const write = (record: VolumeRecord) =>
    formatComment({ ...volume.comment, record }, world.settings.maxCommentBytes);
  const record = withdrawnRecord(volume.record, world.clock.now());
  // Of the comment as it stands it may be known since when its export is off: of this withdrawal it is not.
  const comment = write(record) === volume.stored.comment ? write(rewritten(record)) : write(record);
  // The list of those who held it would keep the next holder out.
  const list = hasOwnList(volume) ? { allowedHosts: [] } : {};
  const gone = (stored: StoredVolume) =>
    !stored.exported && stored.comment === comment &&
    sameHosts(stored.allowedHosts, list.allowedHosts ?? volume.stored.allowedHosts);
  const change = { export: false, comment, ...list } as const;
  const after = await changeVolume(world, verb, volume.stored, change, gone, context);
  const withdrawn = getOwned(after, world.settings.cluster, verb);
  return await correctTime(world, withdrawn, verb, context);
}

/** A router that answered late withdrew late: whoever goes by the recorded time must not count from before it did. */
async function correctTime(
  world: ControllerWorld,
  volume: OwnedVolume,
  verb: string,
  context: CallContext,
): Promise<OwnedVolume> {
  const now = world.clock.now();
  const recorded = volume.record.withdrawnAtSeconds ?? 0;
  if (world.settings.unexportGraceMs === 0) return volume;
  if (now <= recorded * 1000) {
    world.withdrawals.confirm(volume.stored.id, volume.stored.comment);
    return volume;
  }
  const record = { ...volume.record, withdrawnAtSeconds: withdrawalSeconds(now) };
  const comment = formatComment({ ...volume.comment, record }, world.settings.maxCommentBytes);
  const gone = (stored: StoredVolume) => !stored.exported && stored.comment === comment;
  const after = await changeVolume(world, verb, volume.stored, { comment }, gone, context);
  world.withdrawals.confirm(after.id, comment);
  return getOwned(after, world.settings.cluster, verb);
}

/**
 * Waits until no connection of the last epoch can still be alive on the router.
 *
 * @throws {VolumeError} unavailable at once when the call's deadline comes first
 */
export async function waitForGrace(
  world: ControllerWorld,
  volume: OwnedVolume,
  state: RouterState,
  verb: string,
  context: CallContext,
): Promise<void> {
  const { record, stored } = volume;
  const waitMs = remainingGraceMs({
    record,
    graceMs: world.settings.unexportGraceMs,
    upMs: state.upMs,
    ageMs: world.withdrawals.ageMs(stored),
  });
  if (waitMs === 0) return;
  if (world.clock.now() + waitMs >= context.deadlineMs) {
    throw new VolumeError(
      "unavailable",
      `Cannot ${verb} the volume yet as its last export was withdrawn only a moment ago: volume=${volume.stored.id}; ` +
        `try again in ${Math.ceil(waitMs / 1000)} s (--unexport-grace)`,
    );
  }
  await world.clock.sleep(waitMs, context.signal);
}
