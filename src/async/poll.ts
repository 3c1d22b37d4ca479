import type { CallContext, Clock } from "../volume/ports/system.ts";
import { timeLeftMs } from "./deadline.ts";

const firstPollMs = 10;
/** The pause grows slowly: most waits take a tenth of a second, and twice that would be noticeable. */
const pollGrowth = 1.2;
const maxPollMs = 500;
/** For a call without a deadline. */
const maxWaitMs = 60_000;
/** The time that remains of the call for an error that says what it waited for, instead of only that its time is up. */
const marginMs = 500;

/** How long the call may wait for something, in milliseconds, and still be able to say what it waited for. */
export function maxWaitOf(context: CallContext, clock: Clock): number {
  return Math.min(timeLeftMs(context, clock) - marginMs, maxWaitMs);
}

/**
 * Calls `read` until it returns anything but undefined, for at most `limitMs` milliseconds and until shortly before the
 * call's deadline; then returns undefined.
 *
 * @throws the signal's reason when the call is aborted; whatever `read` throws
 */
export async function poll<T>(
  clock: Clock,
  context: CallContext,
  read: () => T | undefined | Promise<T | undefined>,
  limitMs = maxWaitMs,
): Promise<T | undefined> {
  const untilMs = clock.monotonicMs() + Math.min(maxWaitOf(context, clock), limitMs);
  for (let waitMs = firstPollMs;; waitMs = Math.min(waitMs * pollGrowth, maxPollMs)) {
    const value = await read();
    if (value !== undefined) return value;
    if (clock.monotonicMs() + waitMs > untilMs) return undefined;
    await clock.sleep(waitMs, context.signal);
  }
}
