import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/**
 * A client whose deadline passes also cancels its stream, and the cancellation may arrive a moment before this side's
 * own timer. So close to the deadline it is reported as what it is.
 */
const DEADLINE_SLACK_MS = 100;

/** Timers overflow beyond this; a deadline in 24 days is none. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One call from its arrival until its handler has settled: the context it hands down, and how that context ends. */
export class CallScope {
  readonly context: CallContext;
  /** Resolves with the reason when the context ends before the handler does. */
  readonly ended: Promise<VolumeError>;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #resolveEnded: (reason: VolumeError) => void;
  #cancelTimer: () => void = () => {};
  #closed = false;

  /** `deadlineMs` is in milliseconds of `clock.now()`; Infinity is none. */
  constructor(requestId: string, deadlineMs: number, clock: Clock) {
    const { promise, resolve } = Promise.withResolvers<VolumeError>();
    this.ended = promise;
    this.#resolveEnded = resolve;
    this.#clock = clock;
    this.context = { requestId, deadlineMs, signal: this.#controller.signal };
    const leftMs = deadlineMs - clock.now();
    if (leftMs <= 0) this.end(deadlineError());
    else if (leftMs <= MAX_TIMER_MS) this.#cancelTimer = clock.timer(leftMs, () => this.end(deadlineError()));
  }

  /** The client went away, or gave up because its deadline is here. */
  clientCancelled(): void {
    const nearDeadline = this.context.deadlineMs - this.#clock.now() <= DEADLINE_SLACK_MS;
    this.end(nearDeadline ? deadlineError() : new VolumeError("cancelled", "The caller cancelled the call"));
  }

  /** Ends the context for `reason`; later reasons change nothing. */
  end(reason: VolumeError): void {
    if (this.#closed) return;
    this.close();
    this.#controller.abort(reason);
    this.#resolveEnded(reason);
  }

  /** The handler has settled: from here on nothing ends the context. */
  close(): void {
    this.#closed = true;
    this.#cancelTimer();
  }
}

function deadlineError(): VolumeError {
  return new VolumeError("deadline", "The caller's deadline passed before the outcome was known");
}
