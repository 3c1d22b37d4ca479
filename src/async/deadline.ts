import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";

/** The longest timer that every platform supports, in milliseconds. */
const maxTimerMs = 2 ** 31 - 1;

/** A signal that can be disposed of, to stop listening to its sources. */
export interface LimitedSignal extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * A signal that is aborted with `signal`, or after `limitMs` milliseconds with `reason`. Disposing of it cancels the
 * timer; the signal is never aborted after that.
 */
export function limitSignal(
  clock: Clock,
  signal: AbortSignal,
  limitMs: number,
  reason?: Error,
): LimitedSignal {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const cancelTimer = limitMs > maxTimerMs ? () => {} : clock.timer(limitMs, () => controller.abort(reason));
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      cancelTimer();
      signal.removeEventListener("abort", onAbort);
    },
  };
}

/**
 * Runs `work` as a call of its own, which ends with `signal` or after `timeoutMs` milliseconds. It waits until `work`
 * has settled, so `work` itself has to obey the signal.
 *
 * @param name replaces a request's id in the log
 * @throws {VolumeError} deadline when the time is up; the signal's reason; whatever `work` rejects with
 */
export async function runLimited<T>(
  clock: Clock,
  { name, timeoutMs, signal }: {
    readonly name: string;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  },
  work: (context: CallContext) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const late = new VolumeError("deadline", `Cannot finish ${name} within ${timeoutMs / 1000} s`);
  using limited = limitSignal(clock, signal, timeoutMs, late);
  return await work({ requestId: name, signal: limited.signal, deadlineMs: clock.now() + timeoutMs });
}

/**
 * Runs `action` and settles within `limitMs` milliseconds, or when the call ends, even if the action never ends, for
 * example because it hangs in the kernel. The action's context ends at the same time.
 *
 * @param late the error when the time is over, or the action's name for that error, such as "read the mounts"
 * @throws {VolumeError} deadline, or `late`, when the time is over; the reason of the call's end; whatever the action
 *   throws
 */
export async function withDeadline<T>(
  clock: Clock,
  context: CallContext,
  limitMs: number,
  late: string | VolumeError,
  action: (limited: CallContext) => Promise<T>,
): Promise<T> {
  context.signal.throwIfAborted();
  const error = typeof late === "string"
    ? new VolumeError("deadline", `Cannot ${late} within ${limitMs / 1000} s`)
    : late;
  using limited = limitSignal(clock, context.signal, limitMs, error);
  const { signal } = limited;
  const { promise: ended, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  const deadlineMs = Math.min(context.deadlineMs, clock.now() + limitMs);
  return await Promise.race([action({ ...context, signal, deadlineMs }), ended]);
}

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
 * Waits for `work` as long as the call lasts. A result that comes later is passed to `discard`.
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
    // The caller has gone, so a later failure is ignored.
    work.then(discard, () => {});
    throw outcome;
  } finally {
    stop();
  }
}

/** Why the call is over; undefined while it is not. */
export function contextEnd(context: CallContext, clock: Clock): VolumeError | undefined {
  if (context.signal.aborted) return endReason(context);
  return clock.now() >= context.deadlineMs ? timeIsUp() : undefined;
}

/** Calls `end` once when the call ends; returns a function that stops watching. */
export function watchContext(
  context: CallContext,
  clock: Clock,
  end: (error: VolumeError) => void,
): () => void {
  const onAbort = () => end(endReason(context));
  context.signal.addEventListener("abort", onAbort, { once: true });
  const leftMs = Math.min(context.deadlineMs - clock.now(), maxTimerMs);
  const cancelTimer = context.deadlineMs === Infinity ? () => {} : clock.timer(leftMs, () => end(timeIsUp()));
  return () => {
    context.signal.removeEventListener("abort", onAbort);
    cancelTimer();
  };
}

function endReason(context: CallContext): VolumeError {
  const reason: unknown = context.signal.reason;
  if (VolumeError.is(reason)) return reason;
  return new VolumeError("cancelled", "Cannot finish because the call was cancelled", { cause: reason });
}

function timeIsUp(): VolumeError {
  return new VolumeError(
    "deadline",
    "Cannot wait any longer because the call's time is up; try again",
  );
}
