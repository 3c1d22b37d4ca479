import { limitSignal } from "../../async/deadline.ts";
import type { MethodsOf, ServiceMethods } from "../../csi/server/call.ts";
import type { ControllerRpcs } from "../../csi/generated/csi.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** How long somebody who asks whether this controller is ready is kept waiting for that, in milliseconds. */
const maxHoldMs = 20_000;

type Waiter = Pick<PromiseWithResolvers<void>, "resolve" | "reject">;

/** Whether a controller of several may change anything now. */
export interface Leading {
  /** Why it may not, in words that follow "because"; undefined while it may. The clock decides, not the running loops. */
  refusal(): string | undefined;
}

/**
 * The lead of a controller that takes part in an election: nothing is answered and nothing sent to the router without it.
 *
 * It has an end from the moment it begins, by a clock that nobody sets: a process that stood still finds it over before it does
 * anything else. One that ran out while the API server was away goes on when it is renewed, as nobody else can have had it.
 * Once somebody else has it, it does not come back: what was begun under it is of no use any more, and the process ends.
 */
export class Lead implements Leading {
  readonly #clock: Clock;
  readonly #lost = Promise.withResolvers<string>();
  /** Those who wait for its beginning: a standby is asked on and on, so nobody is remembered for longer than he waits. */
  readonly #waiting = new Set<Waiter>();
  #untilMs: number | undefined;
  #holder = "";
  #ended: string | undefined;
  /** Ends what runs under it when it is over. */
  #term = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether it has begun, and was not taken by others. */
  get isHeld(): boolean {
    return this.#untilMs !== undefined && this.#ended === undefined;
  }

  /** Resolves with the reason when it was lost; never when it was given up. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** Somebody else was seen to hold it, or to have held it since this one did; "" for one that has stopped. */
  heldBy(holder: string): void {
    this.#holder = holder;
    if (this.#untilMs !== undefined) this.lose("another controller has taken it");
  }

  /** It was won, or renewed, and lasts until then, in milliseconds of `Clock.monotonicMs()`. */
  holdUntil(untilMs: number): void {
    this.#untilMs = untilMs;
    if (this.#ended === undefined && this.#term.signal.aborted) this.#term = new AbortController();
    for (const waiter of this.#waiting) waiter.resolve();
  }

  /** It is over, and may go on with the next renewal: nothing that runs under it lasts until then. */
  interrupt(): void {
    this.#term.abort(this.#error(this.refusal() ?? "this controller could not renew its lead in time"));
  }

  /** It was lost: others may have it soon. */
  lose(reason: string): void {
    this.end(`this controller has lost the lead: ${reason}`);
    this.#lost.resolve(reason);
  }

  /** Ends it for good, or the waiting for it. */
  end(reason: string): void {
    this.#ended ??= reason;
    this.#term.abort(this.#error(reason));
    for (const waiter of this.#waiting) waiter.reject(this.#over(reason));
  }

  #over(reason: string): VolumeError {
    return new VolumeError("unavailable", `Cannot wait for the lead because ${reason}`);
  }

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
   * Does something that lasts no longer than the lead, with a signal that ends with it. One that ran out is waited for: when the
   * API server is back it goes on a moment later, and whoever is refused may not come again for minutes.
   *
   * @throws {VolumeError} unavailable while it is not held, and when it is not held any more at the end
   */
  async during<T>(context: CallContext, work: (context: CallContext) => Promise<T>): Promise<T> {
    if (this.isHeld && this.refusal() !== undefined) await this.held(context);
    this.assert();
    try {
      return await work({ ...context, signal: AbortSignal.any([context.signal, this.#term.signal]) });
    } finally {
      // Whatever came of it: that it is over says more.
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
   * Keeps somebody who asks whether this controller serves waiting until it does, as long as half of the call's time allows:
   * sidecars ask on and on, and write a line each time.
   *
   * @throws {VolumeError} unavailable when it does not lead by then
   */
  async held({ signal, deadlineMs }: CallContext): Promise<void> {
    const forMs = Math.min(maxHoldMs, (deadlineMs - this.#clock.now()) / 2);
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
 * The methods of a controller that answers only while it leads: also what it has done is only answered as done while it still
 * does, as another one may have undone it since.
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
