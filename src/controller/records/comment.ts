import { VolumeError } from "../../volume/errors.ts";
import {
  commentText,
  commentWithoutRecord,
  formatComment,
  maxCommentBytes,
  type OwnedVolume,
  parseComment,
  type VolumeRecord,
} from "../../volume/model/record.ts";

/** The comment of a volume with that record in it. @throws {VolumeError} precondition when it does not fit */
export function commentWith(volume: OwnedVolume, record: VolumeRecord): string {
  return formatComment({ ...volume.comment, record }, roomFor(volume));
}

/** The same; undefined when it does not fit. */
export function fittingComment(volume: OwnedVolume, record: VolumeRecord): string | undefined {
  const text = commentText({ ...volume.comment, record });
  return byteLength(text) <= roomFor(volume) ? text : undefined;
}

/** Whether the router keeps the whole comment of a volume with that record in it. */
export function fits(volume: OwnedVolume, record: VolumeRecord): boolean {
  return fittingComment(volume, record) !== undefined;
}

/** How long the comment of a volume may be, in bytes: what the router keeps of it now, it keeps again. */
function roomFor({ stored }: Pick<OwnedVolume, "stored">): number {
  return Math.max(maxCommentBytes, byteLength(stored.comment));
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/**
 * Whether a router has kept only the beginning of a comment that was written. Nothing at all is a person's doing, and a note
 * without the record behind it is what was there before the record was.
 */
export function isCut(kept: string, written: string): boolean {
  if (kept === written) return false;
  const parsed = parseComment(written);
  const note = parsed.state === "record" ? commentWithoutRecord(parsed.comment) : undefined;
  return kept !== "" && kept !== note && kept.length < written.length && written.startsWith(kept);
}

/** The error for a router that keeps too little of a comment. */
export function cutComment(verb: string, id: string, keptBytes: number): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because the router keeps only ${keptBytes} bytes of a comment: volume=${id}; shorten node ids ` +
      "or the note in the disk's comment (rds-csi doctor --probe shows the router's limits)",
  );
}
