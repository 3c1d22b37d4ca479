import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/ports.ts";

/** The longest timer that every platform keeps, in milliseconds. */
const longestTimerMs = 2 ** 31 - 1;

/** Why the call is over; undefined while it is not. */
export function contextEnd(context: CallContext, clock: Clock): VolumeError | undefined {
  if (context.signal.aborted) return endReason(context);
  return clock.now() >= context.deadlineMs ? timeIsUp() : undefined;
}

/** Calls `end` once when the call is going to be over; returns how to stop watching. */
export function watchContext(
  context: CallContext,
  clock: Clock,
  end: (error: VolumeError) => void,
): () => void {
  const onAbort = () => end(endReason(context));
  context.signal.addEventListener("abort", onAbort, { once: true });
  const leftMs = Math.min(context.deadlineMs - clock.now(), longestTimerMs);
  const cancelTimer = context.deadlineMs === Infinity ? () => {} : clock.timer(leftMs, () => end(timeIsUp()));
  return () => {
    context.signal.removeEventListener("abort", onAbort);
    cancelTimer();
  };
}

function endReason(context: CallContext): VolumeError {
  const reason: unknown = context.signal.reason;
  if (VolumeError.is(reason)) return reason;
  return new VolumeError("cancelled", "Cannot finish as the call was cancelled", { cause: reason });
}

function timeIsUp(): VolumeError {
  return new VolumeError(
    "deadline",
    "Cannot wait any longer as the call's time is up; try again",
  );
}
