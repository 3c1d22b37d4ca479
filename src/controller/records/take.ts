import { filePrefixOf } from "../../volume/model/layout.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { ifSent } from "../../volume/ports/store.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import { commentWith, fits, writeRecord } from "../change.ts";
import type { ControllerCall } from "../deps.ts";
import { commit } from "./commit.ts";
import { premisesOf } from "./confirmations.ts";
import type { Step } from "./steps.ts";

/** Takes a step of a volume as it was read, and returns it as read back. One command. */
export async function taken(call: ControllerCall, verb: string, step: Step): Promise<OwnedVolume> {
  const { volume, record, change, isDone } = step;
  return counted(call, step, await writeRecord(call, verb, volume, record, isDone, change));
}

/**
 * Takes a step of a volume as it is remembered, if the router confirms what it claims. One command, or none. Undefined proves
 * nothing: the router has another record or image, or the volume is gone. The comment may not grow, so that the router cannot
 * cut it.
 */
export async function takenUnread(
  call: ControllerCall,
  verb: string,
  step: Step,
): Promise<OwnedVolume | undefined> {
  const { kind, volume, record, change, isDone } = step;
  const { stored: disk } = volume;
  const { cluster, settleMs } = call.settings;
  const premises = premisesOf(kind, { disk, filePrefix: filePrefixOf(disk.id, cluster), settleMs });
  if (premises === undefined || !fits(volume, record)) return undefined;
  const comment = commentWith(volume, record);
  if (comment === disk.comment || comment.length > disk.comment.length) return undefined;
  const write = { id: disk.id, set: { ...change, comment } };
  const after = ifSent(await commit(call, disk, write, premises))?.after.volume;
  // By a person's hand another disk may have come into the slot meanwhile.
  if (after?.comment !== comment || after.imagePath !== disk.imagePath || !isDone(after)) return undefined;
  call.memory.wrote(after, disk.comment);
  return counted(call, step, getOwned(after, cluster, verb));
}

/** Counts the grace of a withdrawal from its read-back. */
function counted(call: ControllerCall, { kind }: Step, after: OwnedVolume): OwnedVolume {
  if (kind === "withdraw") call.memory.off.confirm(after.stored.id, after.stored.comment);
  return after;
}
