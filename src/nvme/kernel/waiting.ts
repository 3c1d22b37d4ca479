import type { CallContext, Clock } from "../../volume/ports/ports.ts";

const firstPollMs = 10;
const longestPollMs = 250;
/** Where the call itself has no deadline. */
const longestMs = 60_000;
/** Left of the call to say what it waited for, instead of only that its time is up. */
const marginMs = 500;

/** Until when the call may wait for the kernel, by the clock. */
export function waitsUntil(context: CallContext, clock: Clock): number {
  return Math.min(context.deadlineMs - marginMs, clock.now() + longestMs);
}

/**
 * Looks again and again until it is so, at most until shortly before the call's deadline; whether it is so.
 *
 * @throws the signal's reason when the call is aborted
 */
export async function poll(context: CallContext, clock: Clock, isSo: () => boolean): Promise<boolean> {
  const untilMs = waitsUntil(context, clock);
  for (let waitMs = firstPollMs;; waitMs = Math.min(waitMs * 2, longestPollMs)) {
    if (isSo()) return true;
    if (clock.now() + waitMs > untilMs) return false;
    await clock.sleep(waitMs, context.signal);
  }
}
