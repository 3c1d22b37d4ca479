import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports.ts";
import type { Command } from "./command.ts";

/** One exec request as a caller hands it in. */
export interface ExecRequest {
  /** What it is for, in a word, for logs and metrics. */
  readonly kind: string;
  /** Requests of one key wait for one another; keys take turns. */
  readonly key: string;
  readonly command: Command;
  readonly context: CallContext;
  /** Sends it only on this connection: what it rests on was seen there, and the router may have rebooted since. */
  readonly onlyOn?: number;
  /** Called each time right before it is handed to a connection. */
  readonly onSent?: () => void;
}

/** What came back of an exec request that may have run. */
export interface ExecReply {
  readonly output: string;
  /** Whether the router ended the channel in order. If not, the output may be cut and the command may still run. */
  readonly ended: boolean;
  /** Which connection it ran on: connections are numbered from 1. */
  readonly connection: number;
  /** `Clock.monotonicMs()` when it had come. */
  readonly receivedMs: number;
}

/** The longest timer that every platform keeps. */
const longestTimerMs = 2 ** 31 - 1;

/** A request on its way through a session: settled once, by an answer or by the end of its call. */
export class Pending {
  readonly request: ExecRequest;
  readonly promise: Promise<ExecReply>;
  readonly queuedMs: number;
  /** How often no channel was to be had for it. */
  refusals = 0;
  /** Set while it runs: gives its channel up. */
  giveUp: (() => void) | undefined;
  #settled = false;
  readonly #resolve: (reply: ExecReply) => void;
  readonly #reject: (error: VolumeError) => void;
  readonly #release: () => void;

  /**
   * @param onEnd called when the call ends first: the request is rejected already
   */
  constructor(request: ExecRequest, clock: Clock, onEnd: (pending: Pending) => void) {
    this.request = request;
    this.queuedMs = clock.monotonicMs();
    const { promise, resolve, reject } = Promise.withResolvers<ExecReply>();
    this.promise = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    const end = (error: VolumeError) => {
      if (this.fail(error)) onEnd(this);
    };
    this.#release = watchContext(request.context, clock, end);
  }

  /** Whether it was answered or failed already. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Answers it; false when it was settled before. */
  answer(reply: ExecReply): boolean {
    return this.#settle(() => this.#resolve(reply));
  }

  /** Fails it; false when it was settled before. */
  fail(error: VolumeError): boolean {
    return this.#settle(() => this.#reject(error));
  }

  #settle(how: () => void): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#release();
    how();
    return true;
  }
}

/** Why the call is over; undefined while it is not. */
export function contextEnd(context: CallContext, clock: Clock): VolumeError | undefined {
  if (context.signal.aborted) return endReason(context);
  return clock.now() >= context.deadlineMs ? timeIsUp() : undefined;
}

/** Calls `end` once when the call is over; returns how to stop watching. */
export function watchContext(
  context: CallContext,
  clock: Clock,
  end: (error: VolumeError) => void,
): () => void {
  const onAbort = () => end(endReason(context));
  context.signal.addEventListener("abort", onAbort, { once: true });
  const leftMs = Math.min(context.deadlineMs - clock.now(), longestTimerMs);
  const cancelTimer = context.deadlineMs === Infinity ? () => {} : clock.timer(leftMs, () => end(timeIsUp()));
  return () => {
    context.signal.removeEventListener("abort", onAbort);
    cancelTimer();
  };
}

function endReason(context: CallContext): VolumeError {
  const reason: unknown = context.signal.reason;
  if (VolumeError.is(reason)) return reason;
  return new VolumeError("cancelled", "Cannot finish as the call was cancelled", { cause: reason });
}

function timeIsUp(): VolumeError {
  return new VolumeError(
    "deadline",
    "Cannot wait for the router any longer as the call's time is up; try again",
  );
}
