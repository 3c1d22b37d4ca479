import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/ports.ts";
import { describeAddress, type SubsystemAddress } from "./address.ts";

const defaultLimitMs = 15_000;

/**
 * Lets a target take no longer than it may, though the call has more time, or has no deadline at all.
 *
 * @throws {VolumeError} unavailable when the limit is over; whatever `work` throws
 */
export async function withinLimit<T>(
  where: SubsystemAddress,
  context: CallContext,
  { clock, connectLimitMs = defaultLimitMs }: { readonly clock: Clock; readonly connectLimitMs?: number },
  work: (context: CallContext) => Promise<T>,
): Promise<T> {
  const limitMs = clock.now() + connectLimitMs;
  if (context.deadlineMs <= limitMs) return await work(context);
  try {
    return await work({ ...context, deadlineMs: limitMs });
  } catch (error) {
    if (!VolumeError.is(error, "deadline") || context.signal.aborted) throw error;
    throw new VolumeError(
      "unavailable",
      `Cannot connect to the NVMe target as it did not answer in time: ms=${connectLimitMs} ${
        describeAddress(where)
      }`,
    );
  }
}
