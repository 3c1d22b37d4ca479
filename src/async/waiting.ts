import type { Clock } from "../volume/ports/system.ts";
import { VolumeError } from "../volume/errors.ts";

/**
 * Waits for `work`, but at most `limitMs` milliseconds; returns whether it has ended by then. Rejects with what `work`
 * rejects with in that time.
 */
export async function endsWithin(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const cancelTimer = clock.timer(limitMs, () => resolve(false));
  return await Promise.race([work.then(() => true), late]).finally(cancelTimer);
}

/**
 * Waits for `work` until the signal is aborted. A result that comes later is passed to `discard`.
 *
 * @throws {VolumeError} deadline or cancelled when the signal is aborted first; whatever `work` rejects with
 */
export async function duringCall<T>(
  work: Promise<T>,
  signal: AbortSignal,
  discard: (late: T) => void = () => {},
): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<VolumeError>();
  const onAbort = () => resolve(endOf(signal)!);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const outcome = await Promise.race([work, over]);
    if (!VolumeError.is(outcome)) return outcome;
    // The caller has gone, so a later failure is ignored.
    work.then(discard, () => {});
    throw outcome;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Why the signal's call is over; undefined while it is not. */
export function endOf(signal: AbortSignal): VolumeError | undefined {
  if (!signal.aborted) return undefined;
  const reason: unknown = signal.reason;
  if (VolumeError.is(reason)) return reason;
  return new VolumeError("cancelled", "Cannot finish because the call was cancelled", { cause: reason });
}
