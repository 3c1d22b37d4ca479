import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/ports.ts";

/**
 * Runs `action` and answers within `limitMs` milliseconds, or when the call ends, whatever the action does: the kernel
 * may keep it for ever. What it has begun is told to stop by the signal that it is given.
 *
 * @param what it does, as "look at the mounts", for the error
 * @throws {VolumeError} deadline when the time is over; the reason of the call's end; whatever the action throws
 */
export async function within<T>(
  clock: Clock,
  context: CallContext,
  limitMs: number,
  what: string,
  action: (limited: CallContext) => Promise<T>,
): Promise<T> {
  context.signal.throwIfAborted();
  const controller = new AbortController();
  const { signal } = controller;
  const { promise: ended, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  const onEnd = () => controller.abort(context.signal.reason);
  context.signal.addEventListener("abort", onEnd, { once: true });
  const cancelTimer = clock.timer(limitMs, () => {
    controller.abort(new VolumeError("deadline", `Cannot ${what} within ${limitMs / 1000} s`));
  });
  const deadlineMs = Math.min(context.deadlineMs, clock.now() + limitMs);
  try {
    return await Promise.race([action({ ...context, signal, deadlineMs }), ended]);
  } finally {
    cancelTimer();
    context.signal.removeEventListener("abort", onEnd);
  }
}
