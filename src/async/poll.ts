import type { CallContext, Clock } from "../volume/ports/system.ts";

const firstPollMs = 10;
/** Slowly longer: most things take a tenth of a second, and waiting twice as long for them would show. */
const pollGrowth = 1.2;
const maxPollMs = 500;
/** Where the call itself has no deadline. */
const maxWaitMs = 60_000;
/** Left of the call to say what it waited for, instead of only that its time is up. */
const marginMs = 500;

/** How long the call may wait for something, so that it can still say what it waited for, in milliseconds. */
export function maxWaitOf(context: CallContext, clock: Clock): number {
  return Math.min(context.deadlineMs - clock.now() - marginMs, maxWaitMs);
}

/**
 * Calls `read` until it returns something else than undefined, at most until shortly before the call's deadline;
 * undefined when it does not.
 *
 * @throws the signal's reason when the call is aborted; whatever `read` throws
 */
export async function poll<T>(
  clock: Clock,
  context: CallContext,
  read: () => T | undefined | Promise<T | undefined>,
): Promise<T | undefined> {
  const untilMs = clock.monotonicMs() + maxWaitOf(context, clock);
  for (let waitMs = firstPollMs;; waitMs = Math.min(waitMs * pollGrowth, maxPollMs)) {
    const value = await read();
    if (value !== undefined) return value;
    if (clock.monotonicMs() + waitMs > untilMs) return undefined;
    await clock.sleep(waitMs, context.signal);
  }
}
