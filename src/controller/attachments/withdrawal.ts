import { timeLeftMs } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { remainingGraceMs } from "../../volume/rules/grace.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { exportedCounter, raisedRecord, withdrawnRecord } from "../../volume/rules/publish.ts";
import { type OwnedVolume, rewritten } from "../../volume/model/record.ts";
import { commentWith, writeKnown, writeRecord } from "../change.ts";
import type { ControllerCall } from "../deps.ts";

/**
 * Withdraws the export of a volume that no node holds any more, and returns it as read back: off, without holders, with
 * the time of the withdrawal. One command.
 *
 * @param knownCounter of the latest epoch that the cluster knows: the next one will be later
 */
export async function withdrawExport(
  call: ControllerCall,
  volume: OwnedVolume,
  verb: string,
  knownCounter = 0,
): Promise<OwnedVolume> {
  const { stored } = volume;
  const ended = withdrawnRecord(volume.record, call.clock.now());
  const record = raisedRecord(ended, Math.max(knownCounter, exportedCounter(volume)), call.random);
  // The present comment may have a confirmed time since when its export is off; that time is not of this withdrawal.
  const isKnown = commentWith(volume, record) === stored.comment;
  const withdrawn = isKnown ? rewritten(record) : record;
  return confirmed(call, await writeRecord(call, verb, volume, withdrawn, isOff, { export: false }));
}

/**
 * Withdraws a volume whose record is older than an epoch that the cluster knows, as when a router has lost its last seconds: the
 * record's holders were shut out, and the attachment that knows of the later epoch may be about to go.
 */
export async function withdrawOlder(
  call: ControllerCall,
  volume: OwnedVolume,
  known: number,
  verb: string,
): Promise<OwnedVolume> {
  const { stored: { id: volumeId, exported: withdrawn }, record: { epoch } } = volume;
  const after = await withdrawExport(call, volume, verb, known);
  call.events.occurred({
    kind: "older-epoch",
    volumeId,
    recorded: epoch?.counter ?? 0,
    known,
    withdrawn,
  });
  return after;
}

/**
 * Withdraws the export of a volume as this process remembers it, held by one node or several. One command.
 *
 * @returns the volume, read back as off; undefined when it has to be read first
 */
export async function withdrawKnown(
  call: ControllerCall,
  known: OwnedVolume,
  verb: string,
): Promise<OwnedVolume | undefined> {
  const record = withdrawnRecord(known.record, call.clock.now());
  const volume = await writeKnown(call, verb, known, record, isOff, { export: false });
  return volume && confirmed(call, volume);
}

function isOff(after: StoredVolume): boolean {
  return !after.exported;
}

/** Counts the grace of a withdrawal that was just read back from now. */
function confirmed(call: ControllerCall, volume: OwnedVolume): OwnedVolume {
  call.memory.off.confirm(volume.stored.id, volume.stored.comment);
  return volume;
}

/**
 * Waits until no connection of the last epoch can still be alive on the router.
 *
 * @returns whether it had to wait: what was read of the volume before may be wrong then
 * @throws {VolumeError} unavailable at once when the call's deadline comes first
 */
export async function waitForGrace(
  call: ControllerCall,
  volume: OwnedVolume,
  verb: string,
): Promise<boolean> {
  const { record, stored } = volume;
  const waitMs = remainingGraceMs({
    record,
    graceMs: call.settings.unexportGraceMs,
    ageMs: call.memory.off.ageMs(stored),
  });
  if (waitMs === 0) return false;
  if (waitMs >= timeLeftMs(call.context, call.clock)) {
    throw new VolumeError(
      "unavailable",
      `Cannot ${verb} the volume yet because its last export was withdrawn only a moment ago: volume=${volume.stored.id}; ` +
        `try again in ${Math.ceil(waitMs / 1000)} s (--unexport-grace)`,
    );
  }
  await call.clock.sleep(waitMs, call.context.signal);
  return true;
}
