import { limitSignal, timeLeftMs } from "../../async/deadline.ts";
import type { MethodsOf, ServiceMethods } from "../../csi/server/call.ts";
import type { ControllerRpcs } from "../../csi/generated/csi.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** How long a caller that asks whether this controller is ready may have to wait, in milliseconds. */
const maxHoldMs = 20_000;

type Waiter = Pick<PromiseWithResolvers<void>, "resolve" | "reject">;

/**
 * The lead of a controller in an election: without it nothing is answered and nothing sent to the router.
 *
 * From its beginning it has an end, by a monotonic clock: a process that was suspended finds it over before it does
 * anything else. A lead that ran out while the API server was away goes on when it is renewed, because nobody else can
 * have had it. Once another controller has had it, it does not come back: work that began under it is useless, and the
 * process ends.
 */
export class Lead {
  readonly #clock: Clock;
  readonly #lost = Promise.withResolvers<string>();
  /** The callers that wait for its beginning. A standby is asked repeatedly, so each is kept only while it waits. */
  readonly #waiting = new Set<Waiter>();
  #untilMs: number | undefined;
  #holder = "";
  #ended: string | undefined;
  /** Ends what runs under it when it is over. */
  #term = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether it has begun, and no other controller has had it since. */
  get isHeld(): boolean {
    return this.#untilMs !== undefined && this.#ended === undefined;
  }

  /** Resolves with the reason when it was lost; never when it was given up. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /**
   * Notes that another controller was seen to hold it, or to have held it since this one did; "" for one that has
   * stopped.
   */
  heldBy(holder: string): void {
    this.#holder = holder;
    if (this.#untilMs !== undefined) this.lose("another controller has taken it");
  }

  /** Notes that it was won, or renewed, and lasts until then, in milliseconds of `Clock.monotonicMs()`. */
  holdUntil(untilMs: number): void {
    this.#untilMs = untilMs;
    if (this.#ended === undefined && this.#term.signal.aborted) this.#term = new AbortController();
    for (const waiter of this.#waiting) waiter.resolve();
  }

  /** Notes that it has run out, and may go on with the next renewal. Everything that runs under it ends. */
  interrupt(): void {
    this.#term.abort(this.#error(this.refusal() ?? "this controller could not renew its lead in time"));
  }

  /** Notes that it was lost: another controller may have it soon. */
  lose(reason: string): void {
    this.end(`this controller has lost the lead: ${reason}`);
    this.#lost.resolve(reason);
  }

  /** Ends it, or the waiting for it, for good. */
  end(reason: string): void {
    this.#ended ??= reason;
    this.#term.abort(this.#error(reason));
    for (const waiter of this.#waiting) waiter.reject(this.#over(reason));
  }

  #over(reason: string): VolumeError {
    return new VolumeError("unavailable", `Cannot wait for the lead because ${reason}`);
  }

  /**
   * Why this controller may change nothing now, as words that follow "because"; undefined while it may. The clock decides,
   * not the running loops.
   */
  refusal(): string | undefined {
    if (this.#ended !== undefined) return this.#ended;
    if (this.#untilMs === undefined) {
      return this.#holder === ""
        ? "no controller leads yet"
        : `another controller leads: holder=${this.#holder}`;
    }
    return this.#clock.monotonicMs() < this.#untilMs
      ? undefined
      : "this controller could not renew its lead in time";
  }

  /** @throws {VolumeError} unavailable while it is not held */
  assert(): void {
    const refusal = this.refusal();
    if (refusal !== undefined) throw this.#error(refusal);
  }

  #error(refusal: string): VolumeError {
    return new VolumeError("unavailable", `Cannot serve the call because ${refusal}`);
  }

  /**
   * Runs work that lasts no longer than the lead, with a signal that ends with it. It waits for a lead that ran out:
   * when the API server is back it goes on a moment later, and a refused caller may not retry for minutes.
   *
   * @throws {VolumeError} unavailable while it is not held, and when it is no longer held at the end
   */
  async during<T>(context: CallContext, work: (context: CallContext) => Promise<T>): Promise<T> {
    if (this.isHeld && this.refusal() !== undefined) await this.held(context);
    this.assert();
    try {
      return await work({ ...context, signal: AbortSignal.any([context.signal, this.#term.signal]) });
    } finally {
      // Whatever the result: the end of the lead matters more.
      this.assert();
    }
  }

  /** Resolves once it has begun, or goes on; rejects when the signal ends, or the lead does. */
  async begun(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#ended !== undefined) throw this.#over(this.#ended);
    if (this.refusal() === undefined) return;
    const waiter = Promise.withResolvers<void>();
    const onAbort = () => waiter.reject(signal.reason);
    this.#waiting.add(waiter);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await waiter.promise;
    } finally {
      this.#waiting.delete(waiter);
      signal.removeEventListener("abort", onAbort);
    }
  }

  /**
   * Lets a caller that asks whether this controller serves wait until it does, for at most half of the call's time:
   * sidecars ask repeatedly, and log a line each time.
   *
   * @throws {VolumeError} unavailable when it does not lead by then
   */
  async held(context: CallContext): Promise<void> {
    const { signal } = context;
    const forMs = Math.min(maxHoldMs, timeLeftMs(context, this.#clock) / 2);
    using limited = limitSignal(this.#clock, signal, forMs);
    try {
      await this.begun(limited.signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!limited.signal.aborted) throw error;
    }
    this.assert();
  }
}

/**
 * Returns the methods of a controller that answers only while it leads. A completed change is answered as done only if
 * it still leads, because another controller may have undone it since.
 */
export function whileLeading(
  methods: MethodsOf<ControllerRpcs>,
  lead: Pick<Lead, "during">,
): MethodsOf<ControllerRpcs> {
  const guarded = Object.entries(methods as ServiceMethods).map(([name, method]) => [
    name,
    method && {
      ...method,
      handler: (request: never, context: CallContext) =>
        lead.during(context, (context) => method.handler(request, context)),
    },
  ]);
  return Object.fromEntries(guarded) as MethodsOf<ControllerRpcs>;
}
