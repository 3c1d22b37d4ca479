import { endOf } from "../../async/waiting.ts";
import { FairQueue } from "../../async/fair_queue.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { backoffMs, type BackoffOptions, CircuitBreaker } from "./circuit_breaker.ts";
import { type ExecReply, type ExecRequest, Pending } from "./exec_request.ts";
import type { CommandEvent, ConnectionEvent, RouterObserver } from "./observer.ts";
import { SilenceWatch } from "./silence.ts";
import { ConnectError, type ExecEnd, type SshConnection, type SshTransport } from "./transport.ts";

/** Options of {@linkcode Session}. */
export interface SessionOptions {
  readonly transport: SshTransport;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer?: RouterObserver;
  /** The maximum number of exec channels at once. @default {8} */
  readonly maxChannels?: number;
  /** The maximum number of waiting requests; a further one is refused at once. @default {1024} */
  readonly maxQueued?: number;
  /** Milliseconds after which a command counts as unanswered. @default {30000} */
  readonly commandTimeoutMs?: number;
  /**
   * The router counts as frozen after commands have waited this many milliseconds and none has ended properly
   * meanwhile: the circuit breaker opens, and the commands run on. @default {20000}
   */
  readonly silentAfterMs?: number;
  /** Milliseconds for connecting, from the first packet to the last step of authentication. @default {15000} */
  readonly connectTimeoutMs?: number;
  /** Milliseconds that an abandoned channel may linger before the whole connection is closed. @default {5000} */
  readonly lingerMs?: number;
  /** Failed connection attempts in a row after which requests are refused at once. @default {3} */
  readonly openAfter?: number;
  /**
   * Why nothing may be sent now, as words that follow "because"; undefined while sending is allowed. It is called right
   * before each command is sent. @default {always allowed}
   */
  readonly fence?: () => string | undefined;
}

/** The maximum number of channels for long requests, see `ExecRequest.timeoutMs`: the others need channels too. */
const maxLong = 2;
/** How many refused channels one request tolerates. */
const channelAttempts = 8;
/** Delays between connection attempts. */
const connectBackoff: BackoffOptions = { firstMs: 250, maxMs: 5000 };
const channelBackoff: BackoffOptions = { firstMs: 100, maxMs: 2000 };

/** One connection and the requests on it. */
interface Link {
  readonly id: number;
  readonly connection: SshConnection;
  running: number;
  /** The number of long requests among them. */
  long: number;
  /** The calls aside of which one is among them. */
  readonly aside: Set<string>;
  /** Whether any command ended properly on it: only then is it replaced at once when it ends. */
  useful: boolean;
  /** Set after a refused channel until one is free or the delay is over. */
  resume: (() => void) | undefined;
}

/**
 * Sends exec requests to one router over one connection, at most eight at a time.
 *
 * States:
 * - **idle**: no connection. The first request connects.
 * - **connecting**: requests wait. Success leads to ready, failure to backing-off.
 * - **ready**: requests are sent, keys taking turns. When the connection ends, running requests are answered as not
 *   ended (their outcome is unknown), and waiting ones go on waiting. The state becomes idle, or backing-off when
 *   nothing had ever ended properly on that connection.
 * - **backing-off**: waits for a jittered, growing delay, then idle.
 * - **closed**: final. Every request is refused.
 *
 * Requests wait through a lost connection and failed attempts, each to its deadline, until a {@linkcode CircuitBreaker}
 * opens. Then all waiting requests fail as unavailable, and later ones are refused at once. After the delay one request
 * at a time is sent as a test, until a command ends properly. The breaker also opens for a router that accepts
 * connections and answers no command. Commands that run by then run on, and the end of one closes the breaker.
 *
 * Long requests, such as copying a file, share the connection and get few of its channels. Their silence counts only
 * when one outlasts its own time limit, and that of a request aside never: see `CallContext.aside`.
 *
 * A request is sent at most once: only one that certainly never left (no connection, no channel) is sent again. A
 * request whose call ends while it waits is never sent; one whose call ends while it runs gives up its channel.
 */
export class Session {
  readonly #options: Required<Omit<SessionOptions, "observer">> & Pick<SessionOptions, "observer">;
  readonly #queue = new FairQueue<Pending>();
  readonly #breaker: CircuitBreaker;
  readonly #silence: SilenceWatch;
  #state: ConnectionEvent["state"] = "idle";
  #link: Link | undefined;
  #connections = 0;
  /** Ends the attempt to connect, or the wait for the next one. */
  #interrupt = () => {};

  constructor(options: SessionOptions) {
    this.#options = {
      maxChannels: 8,
      maxQueued: 1024,
      commandTimeoutMs: 30_000,
      silentAfterMs: 20_000,
      connectTimeoutMs: 15_000,
      lingerMs: 5000,
      openAfter: 3,
      fence: () => undefined,
      ...options,
    };
    this.#breaker = new CircuitBreaker({
      ...this.#options,
      backoff: connectBackoff,
      changed: (event) => options.observer?.breaker?.(event),
    });
    const { clock, silentAfterMs } = this.#options;
    this.#silence = new SilenceWatch(clock, silentAfterMs, () => this.#foundSilent());
  }

  /** The state, see the class. */
  get state(): ConnectionEvent["state"] {
    return this.#state;
  }

  /** The number of the connection that is ready; undefined when none is. */
  get connection(): number | undefined {
    return this.#state === "ready" ? this.#link?.id : undefined;
  }

  /** How many requests wait, and how many were sent and have not ended. */
  get load(): { readonly waiting: number; readonly running: number } {
    return { waiting: this.#queue.size, running: this.#link?.running ?? 0 };
  }

  /** The router's address, for messages. */
  get target(): string {
    return this.#options.transport.target;
  }

  /**
   * Sends one exec request, once.
   *
   * @throws {VolumeError} unavailable when it was certainly not sent: no connection, no channel, a full queue, an open
   *   circuit breaker, or another connection than `onlyOn`
   * @throws {VolumeError} deadline, cancelled or the reason of the call's signal, which may be unavailable too, when the call
   *   ends first; if it was running, its outcome is unknown
   */
  run(request: ExecRequest): Promise<ExecReply> {
    const refusal = endOf(request.context.signal) ?? this.refusal(isLong(request) || isAside(request));
    if (refusal !== undefined) return Promise.reject(refusal);
    const onEnd = (ended: Pending) => {
      this.#queue.remove(request.key, ended);
      ended.giveUp?.();
    };
    const pending = new Pending(request, onEnd, (waiting) => this.#causeOfDelay(waiting));
    this.#queue.push(request.key, pending);
    this.#pump();
    return pending.promise;
  }

  /**
   * Why a further request would be refused at once, kind `unavailable`; undefined when it may wait. A long request is
   * not used to test whether the router is back: all others would wait for it.
   */
  refusal(worksLong = false): VolumeError | undefined {
    const { maxQueued, fence } = this.#options;
    if (this.#state === "closed") return this.#unavailable("the driver is shutting down");
    const fenced = fence();
    if (fenced !== undefined) return this.#unavailable(fenced);
    if (this.#breaker.state !== "closed" && (worksLong || !this.#mayTry())) {
      return this.#unavailable(this.#breaker.reason);
    }
    if (this.#queue.size < maxQueued) return undefined;
    return this.#unavailable(`${maxQueued} commands already wait for it`);
  }

  /** Ends the connection and fails all waiting requests. Running requests are answered as not ended. */
  close(): void {
    if (this.#state === "closed") return;
    this.#enter("closed");
    this.#interrupt();
    this.#link?.resume?.();
    this.#link?.connection.close();
    this.#failWaiting("the driver is shutting down");
  }

  /** Whether a request may test if the router is back: the delay is over, and no other request is doing it. */
  #mayTry(): boolean {
    const { running, aside } = this.#link ?? { running: 0, aside: new Set() };
    return this.#state !== "backing-off" && this.#queue.size === 0 && running === aside.size;
  }

  #pump(): void {
    if (this.#state === "idle" && this.#queue.size > 0) void this.#connect();
    const link = this.#link;
    if (this.#state !== "ready" || link === undefined) return;
    while (link.running < this.#options.maxChannels && link.resume === undefined) {
      const pending = this.#queue.shift(({ request }) => mayGo(request, link));
      if (pending === undefined) return;
      const reason = this.#reasonAgainst(pending, link);
      if (reason === undefined) void this.#send(link, pending);
      else pending.fail(this.#unavailable(reason));
    }
  }

  /** Why a request that has waited may no longer be sent. */
  #reasonAgainst({ request: { onlyOn } }: Pending, link: Link): string | undefined {
    if (onlyOn === undefined || onlyOn === link.id) return this.#options.fence();
    return "the connection was lost since the router was read, so it has to be read again";
  }

  async #connect(): Promise<void> {
    const { transport, clock, connectTimeoutMs } = this.#options;
    this.#enter("connecting");
    this.#breaker.tries();
    const controller = new AbortController();
    const cancelTimer = clock.timer(connectTimeoutMs, () => controller.abort());
    this.#interrupt = () => controller.abort();
    try {
      this.#opened(await transport.connect(controller.signal));
    } catch (error) {
      const text = controller.signal.aborted
        ? `it did not answer within ${connectTimeoutMs / 1000} s`
        : error instanceof Error
        ? error.message
        : String(error);
      this.#failed(text, error instanceof ConnectError && error.lasting);
    } finally {
      cancelTimer();
    }
  }

  #opened(connection: SshConnection): void {
    if (this.#state === "closed") return connection.close();
    const id = ++this.#connections;
    const counts = { running: 0, long: 0, aside: new Set<string>() };
    const link: Link = { id, connection, ...counts, useful: false, resume: undefined };
    this.#link = link;
    this.#enter("ready");
    void connection.closed.then((reason) => this.#lost(link, reason));
    this.#pump();
  }

  #lost(link: Link, reason: string): void {
    link.resume?.();
    if (this.#link !== link) return;
    this.#link = undefined;
    if (this.#state === "closed") return;
    if (!link.useful) return this.#failed(reason, false);
    this.#enter("idle", reason);
    this.#pump();
  }

  /** Handles a connection that could not be opened, or ended before it was useful. */
  #failed(reason: string, lasting: boolean): void {
    if (this.#state === "closed") return;
    const delayMs = this.#breaker.failed(reason, lasting);
    this.#enter("backing-off", reason);
    if (this.#breaker.state === "open") this.#failWaiting(this.#breaker.reason);
    this.#interrupt = this.#options.clock.timer(delayMs, () => {
      this.#enter("idle");
      this.#pump();
    });
  }

  #failWaiting(reason: string): void {
    for (const pending of this.#queue.items()) {
      this.#queue.remove(pending.request.key, pending);
      pending.fail(this.#unavailable(reason));
    }
  }

  async #send(link: Link, pending: Pending): Promise<void> {
    const { clock, commandTimeoutMs, lingerMs } = this.#options;
    const { timeoutMs = commandTimeoutMs, context: { requestId } } = pending.request;
    const long = isLong(pending.request) ? 1 : 0;
    const aside = isAside(pending.request);
    const isWatched = long === 0 && !aside;
    const sentMs = clock.monotonicMs();
    const controller = new AbortController();
    let timedOut = false;
    let cancelLinger = () => {};
    pending.giveUp = () => {
      if (controller.signal.aborted) return;
      // A long command may not react until it is done; the router seems frozen only when the command overran its time.
      if (isWatched || timedOut && !aside) {
        cancelLinger = clock.timer(lingerMs, () => link.connection.close());
      }
      controller.abort();
    };
    const cancelTimeout = clock.timer(timeoutMs, () => {
      timedOut = true;
      pending.giveUp?.();
    });
    link.running++;
    link.long += long;
    if (aside) link.aside.add(requestId);
    this.#breaker.tries();
    if (isWatched) this.#silence.sent();
    pending.sentMs = sentMs;
    pending.request.onSent?.();
    const end = await link.connection.exec(pending.request.command, controller.signal);
    link.running--;
    link.long -= long;
    if (aside) link.aside.delete(requestId);
    if (isAnswered(end)) this.#silence.answered(isWatched);
    else if (isWatched) this.#silence.gaveUp();
    cancelTimeout();
    cancelLinger();
    pending.giveUp = undefined;
    this.#report(pending, sentMs, outcomeOf(end, timedOut, pending.settled));
    this.#finish(link, pending, end);
    this.#pump();
  }

  #finish(link: Link, pending: Pending, end: ExecEnd): void {
    if (end.state === "not-run") return this.#notRun(link, pending, end.reason);
    if (isAnswered(end)) {
      link.useful = true;
      this.#breaker.succeeded();
    }
    link.resume?.();
    pending.answer({
      output: end.output,
      ended: end.state === "ended",
      ...isOverlong(end) && { isOverlong: true },
      connection: link.id,
      receivedMs: this.#options.clock.monotonicMs(),
    });
  }

  /** Handles a connection on which no command is answered. */
  #foundSilent(): void {
    if (this.#state !== "ready" || this.#breaker.state === "open") return;
    const seconds = this.#options.silentAfterMs / 1000;
    this.#breaker.failed(`it takes connections and has answered no command for ${seconds} s`, true);
    this.#failWaiting(this.#breaker.reason);
  }

  /** What a request is waiting for, as words that follow "and". */
  #causeOfDelay({ sentMs, giveUp }: Pending): string {
    const seconds = Math.round((this.#options.clock.monotonicMs() - (sentMs ?? 0)) / 1000);
    const cause = sentMs !== undefined && giveUp !== undefined
      ? `the router has not answered the command for ${seconds} s`
      : this.#state === "ready"
      ? "the command still waited for its turn"
      : "there was no connection to the router";
    return `${cause}: router=${this.target}`;
  }

  /**
   * Puts a request that was never sent back to its place. The link rests until a channel is free or a delay is over.
   */
  #notRun(link: Link, pending: Pending, reason: string): void {
    const { clock, random } = this.#options;
    if (pending.settled) return;
    if (this.#breaker.state === "open") return pending.fail(this.#unavailable(this.#breaker.reason));
    if (this.#state === "closed" || ++pending.refusals >= channelAttempts) {
      const text = `it gives no channel (${reason}); it may be at its limit of SSH sessions`;
      return pending.fail(this.#unavailable(text));
    }
    this.#queue.putBack(pending.request.key, pending);
    if (this.#link !== link || link.resume !== undefined) return;
    const cancel = clock.timer(backoffMs(pending.refusals, random, channelBackoff), () => {
      link.resume?.();
      this.#pump();
    });
    link.resume = () => {
      link.resume = undefined;
      cancel();
    };
  }

  #report(pending: Pending, sentMs: number, outcome: CommandEvent["outcome"]): void {
    const { observer, clock } = this.#options;
    observer?.command?.({
      kind: pending.request.kind,
      requestId: pending.request.context.requestId,
      outcome,
      ms: clock.monotonicMs() - sentMs,
      statements: pending.request.command.statements,
      queued: this.#queue.size,
    });
  }

  #enter(state: ConnectionEvent["state"], reason?: string): void {
    this.#state = state;
    this.#options.observer?.connection?.({ state, reason });
  }

  #unavailable(reason: string): VolumeError {
    return new VolumeError("unavailable", `Cannot ask the router because ${reason}: router=${this.target}`);
  }
}

function isLong(request: ExecRequest): boolean {
  return request.timeoutMs !== undefined;
}

function isAside({ context }: ExecRequest): boolean {
  return context.aside === true;
}

/** Whether there is a channel for a request besides those for all. */
function mayGo(request: ExecRequest, { long, aside }: Link): boolean {
  return isAside(request) ? !aside.has(request.context.requestId) : !isLong(request) || long < maxLong;
}

function isOverlong(end: ExecEnd): boolean {
  return end.state === "torn" && end.isOverlong === true;
}

/** Whether the router has answered, be it with more than can be kept. */
function isAnswered(end: ExecEnd): boolean {
  return end.state === "ended" || isOverlong(end);
}

function outcomeOf(end: ExecEnd, timedOut: boolean, settled: boolean): CommandEvent["outcome"] {
  if (end.state === "ended") return "ended";
  if (timedOut) return "timeout";
  return settled ? "cancelled" : end.state;
}
