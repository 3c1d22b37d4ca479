import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/ports.ts";
import type { CommandIo } from "./io.ts";

/**
 * Does the work of a command, which a signal or the time that it may take ends.
 *
 * @throws {VolumeError} deadline when the time is up, cancelled when it was stopped; whatever `work` rejects with
 */
export async function withinTime<T>(
  name: string,
  { io, clock, timeoutMs }: { readonly io: CommandIo; readonly clock: Clock; readonly timeoutMs: number },
  work: (context: CallContext) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const cancel = clock.timer(timeoutMs, () => {
    over.abort(new VolumeError("deadline", `Cannot finish ${name} within ${timeoutMs / 1000} s`));
  });
  try {
    const signal = AbortSignal.any([io.signal, over.signal]);
    return await work({ requestId: name, signal, deadlineMs: clock.now() + timeoutMs });
  } finally {
    cancel();
  }
}
