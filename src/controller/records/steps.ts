import type { StoredVolume } from "../../volume/model/inventory.ts";
import { type OwnedVolume, rewritten, type VolumeRecord } from "../../volume/model/record.ts";
import type { VolumeChange } from "../../volume/ports/store.ts";
import { exportedCounter, raisedRecord, withdrawnRecord } from "../../volume/rules/publish.ts";
import { commentWith } from "../change.ts";
import type { ControllerCall } from "../deps.ts";
import type { StepKind } from "./confirmations.ts";

/** One change on the router. It names what is to be; guards, retries and late commands are not its business. */
export interface Step {
  readonly kind: StepKind;
  readonly volume: OwnedVolume;
  readonly record: VolumeRecord;
  /** What changes besides the record. */
  readonly change: Omit<VolumeChange, "comment">;
  /** What has to be read back besides the comment. */
  readonly isDone: (after: StoredVolume) => boolean;
}

/**
 * The export goes off, and no node holds the volume any more, with the time of the withdrawal.
 *
 * @param knownCounter of the latest epoch that the cluster knows: the next one will be later
 */
export function withdrawal(call: ControllerCall, volume: OwnedVolume, knownCounter = 0): Step {
  const ended = withdrawnRecord(volume.record, call.clock.now());
  const record = raisedRecord(ended, Math.max(knownCounter, exportedCounter(volume)), call.random);
  // The present comment may have a confirmed time since when its export is off; that time is not of this withdrawal.
  const isKnown = commentWith(volume, record) === volume.stored.comment;
  return {
    kind: "withdraw",
    volume,
    record: isKnown ? rewritten(record) : record,
    change: { export: false },
    isDone: (after) => !after.exported,
  };
}
