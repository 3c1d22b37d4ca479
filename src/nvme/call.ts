import { contextEnd, watchContext } from "../host/call_end.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/ports.ts";

/**
 * Waits for something as long as the call lasts. What comes too late is handed to `discard`.
 *
 * @throws {VolumeError} deadline or cancelled when the call ends first; whatever `work` rejects with
 */
export async function duringCall<T>(
  work: Promise<T>,
  context: CallContext,
  clock: Clock,
  discard: (late: T) => void = () => {},
): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<VolumeError>();
  const ended = contextEnd(context, clock);
  if (ended !== undefined) resolve(ended);
  const stop = watchContext(context, clock, resolve);
  try {
    const outcome = await Promise.race([work, over]);
    if (!VolumeError.is(outcome)) return outcome;
    // Nobody waits for it any more, so its failure is nobody's either.
    work.then(discard, () => {});
    throw outcome;
  } finally {
    stop();
  }
}
