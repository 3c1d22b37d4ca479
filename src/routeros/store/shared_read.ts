import { contextEnd, watchContext } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** What a {@linkcode SharedRead} needs. */
export interface SharedReadOptions<Result> {
  readonly clock: Clock;
  /** Reads. It calls `onSent` before the first byte leaves for the router. */
  readonly read: (context: CallContext, onSent: () => void) => Promise<Result>;
  /** Why no further call may wait now; undefined when one may. */
  readonly refusal: () => VolumeError | undefined;
  /** The most calls that wait for one read; one more is refused at once. @default {1024} */
  readonly maxJoined?: number;
}

/** One read and the calls that wait for it. */
interface Flight<Result> {
  readonly controller: AbortController;
  readonly joined: Set<PromiseWithResolvers<Result>>;
}

/**
 * One read for all calls that ask for the same at the same time.
 *
 * A call joins a read that waits for its turn, never one that was sent: its answer may be older than the call, and
 * lack what the caller knows to be there. Each call keeps its own deadline and cancellation; the read itself is given
 * up when no call waits for it any more.
 */
export class SharedRead<Result> {
  readonly #options: SharedReadOptions<Result>;
  /** The read that can still be joined. */
  #waiting: Flight<Result> | undefined;

  constructor(options: SharedReadOptions<Result>) {
    this.#options = options;
  }

  /**
   * The result of a read that is sent after this call began.
   *
   * @throws {VolumeError} unavailable when no further call may wait
   * @throws {VolumeError} deadline or cancelled when the call ends first
   */
  async run(context: CallContext): Promise<Result> {
    const over = contextEnd(context, this.#options.clock);
    if (over !== undefined) throw over;
    const waiting = this.#waiting;
    if (waiting === undefined) return await this.#start(context);
    const refusal = this.#options.refusal();
    if (refusal !== undefined) throw refusal;
    const { maxJoined = 1024 } = this.#options;
    if (waiting.joined.size >= maxJoined) {
      throw new VolumeError(
        "unavailable",
        `Cannot ask the router as ${maxJoined} calls already wait for the same`,
      );
    }
    return await this.#join(waiting, context);
  }

  #start(context: CallContext): Promise<Result> {
    const flight: Flight<Result> = { controller: new AbortController(), joined: new Set() };
    const result = this.#join(flight, context);
    this.#waiting = flight;
    const shared = { requestId: context.requestId, signal: flight.controller.signal, deadlineMs: Infinity };
    const settle = (how: (one: PromiseWithResolvers<Result>) => void) => {
      this.#depart(flight);
      for (const one of flight.joined) how(one);
    };
    this.#options.read(shared, () => this.#depart(flight)).then(
      (result) => settle((one) => one.resolve(result)),
      (error) => settle((one) => one.reject(error)),
    );
    return result;
  }

  /** From now on nobody joins it. */
  #depart(flight: Flight<Result>): void {
    if (this.#waiting === flight) this.#waiting = undefined;
  }

  async #join(flight: Flight<Result>, context: CallContext): Promise<Result> {
    const one = Promise.withResolvers<Result>();
    flight.joined.add(one);
    const release = watchContext(context, this.#options.clock, (error) => {
      one.reject(error);
      flight.joined.delete(one);
      if (flight.joined.size > 0) return;
      this.#depart(flight);
      flight.controller.abort(error);
    });
    try {
      return await one.promise;
    } finally {
      release();
    }
  }
}
