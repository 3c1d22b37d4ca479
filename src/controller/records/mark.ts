import type { VolumeError } from "../../volume/errors.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { VolumeChange } from "../../volume/ports/store.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { ControllerCall } from "../deps.ts";
import { cameTo, type Change } from "./steps.ts";
import { changeVolume } from "./write.ts";

/** A disk that becomes a volume of this cluster, or ceases to be one. */
export interface Mark {
  /** `release`: whoever uses it next is not told of its last withdrawal. */
  readonly kind: "mark" | "release";
  /** As it was read. */
  readonly disk: StoredVolume;
  /** The whole comment that it gets. */
  readonly comment: string;
  /** What changes besides the comment. */
  readonly change?: Omit<VolumeChange, "comment">;
  /** What has to be read back besides the comment. */
  readonly isDone: (after: StoredVolume) => boolean;
  /** Thrown where that is not so, when the comment of before is back. @default {the comment stays, and the call fails} */
  readonly otherwise?: VolumeError;
}

/** A disk that becomes a volume, or ceases to be one. What was read back gives the answer, or the rule is asked again. */
export function marking<Answer>(
  { settings }: ControllerCall,
  mark: Mark,
  next: (after: StoredVolume) => Answer | "again",
): Change<Answer> {
  const { kind, disk } = mark;
  const ownership = judgeOwnership(disk, settings.cluster);
  return {
    kind,
    volume: ownership.state === "owned" ? ownership.volume : undefined,
    send: async (call, verb, view) => {
      // What is a person's is looked at, whole.
      if (view.isAssumed) return {};
      const after = await marked(call, verb, mark);
      return cameTo(next(after), view, after);
    },
  };
}

/**
 * Writes the comment of a disk as it was read, and returns the disk as read back. One command.
 *
 * @throws {VolumeError} busy or unavailable, as {@linkcode changeVolume} does; `otherwise`
 */
async function marked(
  call: ControllerCall,
  verb: string,
  { disk, comment, change, isDone, otherwise }: Mark,
): Promise<StoredVolume> {
  const isWritten = (after: StoredVolume) => after.comment === comment;
  const wanted = (after: StoredVolume) => isWritten(after) && (otherwise !== undefined || isDone(after));
  const after = await changeVolume(call, verb, disk, { ...change, comment }, wanted);
  if (otherwise === undefined || isDone(after)) return after;
  const back = (last: StoredVolume) => last.comment === disk.comment;
  await changeVolume(call, verb, after, { comment: disk.comment }, back);
  throw otherwise;
}
