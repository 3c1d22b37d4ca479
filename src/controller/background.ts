import type { ControllerWorld } from "./deps.ts";
import { messageOf, VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";

/**
 * Does something that nobody has called for, as a call of its own that lasts `timeoutMs` at most.
 *
 * @param name stands in the log in place of a request's id
 * @throws {VolumeError} deadline when the time is up; the signal's reason; whatever `work` rejects with
 */
export async function inBackground<T>(
  clock: Clock,
  { name, timeoutMs, signal }: {
    readonly name: string;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  },
  work: (context: CallContext) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const cancel = clock.timer(timeoutMs, () => {
    over.abort(new VolumeError("deadline", `Cannot finish ${name} within ${timeoutMs / 1000} s`));
  });
  try {
    const both = AbortSignal.any([signal, over.signal]);
    both.throwIfAborted();
    return await work({ requestId: name, signal: both, deadlineMs: clock.now() + timeoutMs });
  } finally {
    cancel();
  }
}

/** How long the next try waits after one that failed, in milliseconds; the last one again and again. */
const pausesMs = [2_000, 5_000, 10_000, 30_000];

/**
 * Does something once that has to be done when a controller begins, and tries again until it is; the first failure is
 * told. Ends early with the signal.
 *
 * @param complaint what cannot be done yet, in words
 */
export async function untilDone(
  { clock, notes }: Pick<ControllerWorld, "clock" | "notes">,
  about: { readonly name: string; readonly timeoutMs: number; readonly complaint: string },
  signal: AbortSignal,
  work: (context: CallContext) => Promise<void>,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      return await inBackground(clock, { ...about, signal }, work);
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      if (failures === 0) notes.warn(`${about.complaint}; it is tried again`, { reason });
      await clock.sleep(pausesMs[Math.min(failures, pausesMs.length - 1)]!, signal).catch(() => {
        // Only the signal ends a sleep, and the loop asks it.
      });
    }
  }
}
