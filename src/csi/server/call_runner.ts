import { timeLeftMs } from "../../async/deadline.ts";
import { endsWithin } from "../../async/waiting.ts";
import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock, Random } from "../../volume/ports/system.ts";
import { type CallRecord, logCall, logLateEnd, redactRequest } from "./access_log.ts";
import { lockKeys, type Method, type VolumeLocks } from "./call.ts";
import { type GrpcCodeName, wireStatus } from "./grpc_status.ts";

/** A call from the transport. */
export interface IncomingCall {
  /** gRPC path, such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  readonly request: unknown;
  /** `Clock.now()` milliseconds, or Infinity. */
  readonly deadlineMs: number;
  /** Registers the one listener for the client's cancellation. */
  onCancel(listener: () => void): void;
}

/** The answer to a call. */
export type CallAnswer =
  | { readonly ok: true; readonly response: unknown }
  | { readonly ok: false; readonly code: GrpcCodeName; readonly details: string };

/** Options of {@linkcode CallRunner}. */
export interface CallRunnerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Receives every answered call, for metrics. It must not throw. */
  readonly observe?: (record: CallRecord) => void;
}

/** How long handlers may take to react when the server stops for good. */
const ABORT_GRACE_MS = 250;

/** Longer ids are cut in the log; the specification allows 128 bytes (CSI v1.13.0, "Size Limits"). */
const MAX_LOGGED_ID_LENGTH = 128;

/**
 * Runs the handlers: request id, deadline and cancellation, lock, log line, error to status. It does not use gRPC, so
 * that a simulation can drive it.
 */
export class CallRunner {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Logger;
  readonly #observe: (record: CallRecord) => void;
  readonly #running = new Set<CallScope>();
  #stopping = false;
  #idle: (() => void) | undefined;

  constructor(options: CallRunnerOptions) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#log = options.log;
    this.#observe = options.observe ?? (() => {});
  }

  /** The number of handlers that have not settled, whether their callers still wait or not. */
  get running(): number {
    return this.#running.size;
  }

  /** Runs one call; resolves with its answer as soon as there is one, and never rejects. */
  async run(
    method: Method<never, unknown>,
    locks: VolumeLocks,
    call: IncomingCall,
  ): Promise<CallAnswer> {
    const startedMs = this.#clock.monotonicMs();
    const scope = new CallScope(this.#requestId(), call.deadlineMs, this.#clock);
    call.onCancel(() => scope.clientCancelled());
    const record = (outcome: Outcome) => this.#record(call, method, scope, startedMs, outcome);

    let answered = false;
    const work = this.#handle(method, locks, call, scope).then(succeeded, failed(scope)).then((outcome) => {
      if (answered) logLateEnd(this.#log, record(outcome));
      return outcome;
    });
    const outcome = await Promise.race([work, scope.ended.then(failed(scope))]);
    answered = true;
    const answer = record(outcome);
    logCall(this.#log, answer);
    this.#observe(answer);
    return outcome.ok ? outcome : { ok: false, ...wireStatus(outcome.error, scope.context.requestId) };
  }

  /**
   * Refuses new calls and waits until the running ones have settled; after `graceMs` it aborts their signals, and
   * resolves whether they react or not.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    await this.#settled(graceMs);
    for (const scope of this.#running) {
      scope.end(
        new VolumeError("unavailable", "Cannot finish the call because the driver is stopping: try again"),
      );
    }
    await this.#settled(ABORT_GRACE_MS);
  }

  /** Synchronous up to the handler: nothing may happen between checking a lock and taking it. */
  async #handle(
    method: Method<never, unknown>,
    locks: VolumeLocks,
    call: IncomingCall,
    scope: CallScope,
  ): Promise<unknown> {
    let release = () => {};
    this.#running.add(scope);
    try {
      const request = call.request as never;
      this.#logRequest(call, scope);
      if (this.#stopping) {
        throw new VolumeError("unavailable", "Cannot take the call because the driver is stopping");
      }
      scope.context.signal.throwIfAborted();
      if (method.changing) {
        try {
          const holder = `${methodName(call.path)} request=${scope.context.requestId}`;
          release = locks.take(lockKeys(method.lockKey(request)), holder);
        } catch (error) {
          if (VolumeError.is(error, "busy")) await method.whenBusy?.(request, scope.context);
          throw error;
        }
      }
      return await method.handler(request, scope.context);
    } finally {
      release();
      scope.close();
      this.#running.delete(scope);
      if (this.#running.size === 0) this.#idle?.();
    }
  }

  async #settled(timeoutMs: number): Promise<void> {
    if (this.#running.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle = resolve;
    await endsWithin(this.#clock, timeoutMs, promise);
  }

  #requestId(): string {
    return this.#random.bytes(4).toHex();
  }

  #logRequest(call: IncomingCall, scope: CallScope): void {
    this.#log.debug("request", () => ({
      method: call.path,
      requestId: scope.context.requestId,
      request: redactRequest(call.path, call.request),
    }));
  }

  #record(
    call: IncomingCall,
    method: Method<never, unknown>,
    scope: CallScope,
    startedMs: number,
    outcome: Outcome,
  ): CallRecord {
    const { requestId } = scope.context;
    return {
      requestId,
      path: call.path,
      changing: method.changing,
      volumeId: volumeIdOf(method, call.request)?.slice(0, MAX_LOGGED_ID_LENGTH),
      code: outcome.ok ? "OK" : wireStatus(outcome.error, requestId).code,
      durationMs: this.#clock.monotonicMs() - startedMs,
      error: outcome.ok ? undefined : outcome.error,
    };
  }
}

type Outcome = { readonly ok: true; readonly response: unknown } | {
  readonly ok: false;
  readonly error: unknown;
};

function succeeded(response: unknown): Outcome {
  return { ok: true, response };
}

/** Code that ended because of the signal may throw its own AbortError; the reason of the signal says more. */
function failed(scope: CallScope): (error: unknown) => Outcome {
  return (error) => {
    const { signal } = scope.context;
    const gaveUp = signal.aborted && error instanceof Error && error.name === "AbortError";
    return { ok: false, error: gaveUp ? signal.reason : error };
  };
}

function methodName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function volumeIdOf(method: Method<never, unknown>, request: unknown): string | undefined {
  if (method.changing) {
    try {
      return lockKeys(method.lockKey(request as never))[0];
    } catch {
      return namedVolume(request); // The call has failed with that error already.
    }
  }
  return namedVolume(request);
}

function namedVolume(request: unknown): string | undefined {
  const { volumeId } = request as { volumeId?: unknown };
  return typeof volumeId === "string" && volumeId !== "" ? volumeId : undefined;
}

/**
 * A client whose deadline passes also cancels its stream, and the cancellation may arrive a moment before this side's
 * own timer. A cancellation so close to the deadline counts as the deadline.
 */
const DEADLINE_SLACK_MS = 100;

/** Timers overflow beyond this; a deadline in 24 days counts as none. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * One call from its arrival until its handler has settled: the context that it passes on, and how that context ends.
 */
class CallScope {
  readonly context: CallContext;
  /** Resolves with the reason when the context ends before the handler does. */
  readonly ended: Promise<VolumeError>;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #resolveEnded: (reason: VolumeError) => void;
  #cancelTimer: () => void = () => {};
  #closed = false;

  /** `deadlineMs` is in milliseconds of `clock.now()`; Infinity for none. */
  constructor(requestId: string, deadlineMs: number, clock: Clock) {
    const { promise, resolve } = Promise.withResolvers<VolumeError>();
    this.ended = promise;
    this.#resolveEnded = resolve;
    this.#clock = clock;
    this.context = { requestId, deadlineMs, signal: this.#controller.signal };
    const leftMs = timeLeftMs(this.context, clock);
    if (leftMs <= 0) this.end(deadlineError());
    else if (leftMs <= MAX_TIMER_MS) this.#cancelTimer = clock.timer(leftMs, () => this.end(deadlineError()));
  }

  /** Handles that the client went away, or gave up at its deadline. */
  clientCancelled(): void {
    // This comes at the end of every call, answered or not: the stack of an unused error would be wasted.
    if (this.#closed) return;
    const nearDeadline = timeLeftMs(this.context, this.#clock) <= DEADLINE_SLACK_MS;
    this.end(nearDeadline ? deadlineError() : new VolumeError("cancelled", "The caller cancelled the call"));
  }

  /** Ends the context for `reason`; later reasons change nothing. */
  end(reason: VolumeError): void {
    if (this.#closed) return;
    this.close();
    this.#controller.abort(reason);
    this.#resolveEnded(reason);
  }

  /** Notes that the handler has settled: from here on nothing ends the context. */
  close(): void {
    this.#closed = true;
    this.#cancelTimer();
  }
}

function deadlineError(): VolumeError {
  return new VolumeError("deadline", "The caller's deadline passed before the outcome was known");
}
