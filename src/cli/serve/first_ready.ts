import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/ports.ts";

/**
 * Resolves as soon as one of several routers can be asked and is fit for this driver. One that is away for long must not keep
 * the volumes of all others from being served; what it lacks is told in the log and the metrics, and by its own calls.
 *
 * @throws {VolumeError} when none is: what a person has to mend rather than what may pass
 */
export async function firstReady(
  asks: readonly ((context: CallContext) => Promise<void>)[],
  context: CallContext,
): Promise<void> {
  try {
    await Promise.any(asks.map((ask) => ask(context)));
  } catch (error) {
    if (!(error instanceof AggregateError)) throw error;
    const reasons: readonly unknown[] = error.errors;
    const isLasting = (reason: unknown) =>
      VolumeError.is(reason, "precondition") || VolumeError.is(reason, "unsupported");
    throw reasons.find((reason) => !VolumeError.is(reason)) ?? reasons.find(isLasting) ?? reasons[0];
  }
}
