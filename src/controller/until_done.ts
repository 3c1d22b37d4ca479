import { runLimited } from "../async/deadline.ts";
import type { ControllerDeps } from "./deps.ts";
import { messageOf } from "../volume/error_messages.ts";
import type { CallContext } from "../volume/ports/system.ts";

/** How long the next try waits after one that failed, in milliseconds; the last one again and again. */
const pausesMs = [2_000, 5_000, 10_000, 30_000];

/**
 * Does once what a controller needs when it begins, and tries again until it succeeds. Reports only the first failure.
 * Ends early with the signal.
 *
 * @param complaint what cannot be done yet, in words
 */
export async function untilDone(
  { clock, notes }: Pick<ControllerDeps, "clock" | "notes">,
  about: { readonly name: string; readonly timeoutMs: number; readonly complaint: string },
  signal: AbortSignal,
  work: (context: CallContext) => Promise<void>,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      return await runLimited(clock, { ...about, signal }, work);
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      if (failures === 0) notes.warn(`${about.complaint}; retrying`, { reason });
      await clock.sleep(pausesMs[Math.min(failures, pausesMs.length - 1)]!, signal).catch(() => {
        // Only the signal ends a sleep, and the loop asks it.
      });
    }
  }
}
