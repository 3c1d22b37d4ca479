import { VolumeError } from "../volume/errors.ts";
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
