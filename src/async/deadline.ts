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

/** A call that ends sooner than the one that it is part of; disposing of it cancels the timer. */
export interface LimitedCall extends Disposable {
  readonly context: CallContext;
}

/** The call's context, whose signal is aborted after `limitMs` milliseconds at the latest, with `reason`. */
export function limitCall(
  clock: Clock,
  context: CallContext,
  limitMs: number,
  reason: Error,
): LimitedCall {
  const { signal, [Symbol.dispose]: dispose } = limitSignal(clock, context.signal, limitMs, reason);
  const deadlineMs = clock.now() + Math.min(limitMs, timeLeftMs(context, clock));
  return { context: { ...context, signal, deadlineMs }, [Symbol.dispose]: dispose };
}

/** How many milliseconds the call has left; Infinity without a deadline. */
export function timeLeftMs({ deadlineMs = Infinity }: CallContext, clock: Clock): number {
  return deadlineMs - clock.now();
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
  { name, timeoutMs, signal, aside }: {
    readonly name: string;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
    readonly aside?: true;
  },
  work: (context: CallContext) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const late = new VolumeError("deadline", `Cannot finish ${name} within ${timeoutMs / 1000} s`);
  using limited = limitCall(clock, { requestId: name, signal, ...aside && { aside } }, timeoutMs, late);
  return await work(limited.context);
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
  using limited = limitCall(clock, context, limitMs, error);
  const { signal } = limited.context;
  const { promise: ended, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return await Promise.race([action(limited.context), ended]);
}
