import type { CallContext, Clock } from "../volume/ports/system.ts";
import { contextEnd, duringCall } from "./deadline.ts";

/** Running work, and how many calls wait for it. */
interface Flight<T> {
  readonly outcome: Promise<T>;
  readonly controller: AbortController;
  calls: number;
}

/** Runs the same work only once at a time: callers during a run share its outcome. Nothing is kept afterwards. */
export class SingleFlight<T> {
  /** The runs that can still be joined, by key. */
  readonly #flights = new Map<string, Flight<T>>();

  /**
   * Returns the outcome of the work of that key, which is started unless it runs already. Rejects with what the work
   * rejects with.
   */
  run(work: () => Promise<T>, key = ""): Promise<T> {
    return (this.#flights.get(key) ?? this.#begin(work, key)).outcome;
  }

  /** How many calls wait for the run of that key that a further call would join. */
  calls(key = ""): number {
    return this.#flights.get(key)?.calls ?? 0;
  }

  /**
   * Like `run()`, for a call with its own deadline. The work is given up when no call waits for it any more.
   *
   * @param work calls `depart` when it begins to read: later callers start a new run, because this one may not see what
   *   they know to exist
   * @throws {VolumeError} deadline or cancelled when the call ends first; whatever `work` rejects with
   */
  async runDuringCall(
    context: CallContext,
    clock: Clock,
    work: (context: CallContext, depart: () => void) => Promise<T>,
    key = "",
  ): Promise<T> {
    const over = contextEnd(context, clock);
    if (over !== undefined) throw over;
    const { requestId } = context;
    const flight = this.#flights.get(key) ??
      this.#begin((signal, depart) => work({ requestId, signal, deadlineMs: Infinity }, depart), key);
    flight.calls++;
    try {
      return await duringCall(flight.outcome, context, clock);
    } catch (error) {
      if (--flight.calls === 0) {
        this.#depart(flight, key);
        flight.controller.abort(error);
      }
      throw error;
    }
  }

  #begin(work: (signal: AbortSignal, depart: () => void) => Promise<T>, key: string): Flight<T> {
    const { promise: outcome, resolve, reject } = Promise.withResolvers<T>();
    const flight = { outcome, controller: new AbortController(), calls: 0 };
    // Set before the work begins, because it may depart at once.
    this.#flights.set(key, flight);
    const depart = () => this.#depart(flight, key);
    Promise.try(work, flight.controller.signal, depart).finally(depart).then(resolve, reject);
    return flight;
  }

  /** From now on no call joins this run. */
  #depart(flight: Flight<T>, key: string): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}
