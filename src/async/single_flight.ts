import { duringCall, endOf } from "./waiting.ts";

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
   * Like `run()`, for a call that ends with its signal. The work is given up when no call waits for it any more.
   *
   * @param work calls `depart` when it begins to read: later callers start a new run, because this one may not see what
   *   they know to exist
   * @throws {VolumeError} deadline or cancelled when the call ends first; whatever `work` rejects with
   */
  async runDuringCall(
    signal: AbortSignal,
    work: (signal: AbortSignal, depart: () => void) => Promise<T>,
    key = "",
  ): Promise<T> {
    const over = endOf(signal);
    if (over !== undefined) throw over;
    const flight = this.#flights.get(key) ?? this.#begin(work, key);
    flight.calls++;
    try {
      return await duringCall(flight.outcome, signal);
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
