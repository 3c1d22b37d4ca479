import type { CallContext, Clock } from "../volume/ports/system.ts";
import { contextEnd, duringCall } from "./deadline.ts";

/** Work that runs, and how many calls wait for it. */
interface Flight<T> {
  readonly outcome: Promise<T>;
  readonly controller: AbortController;
  calls: number;
}

/** Runs the same work once at a time: who asks for it while it runs shares its outcome. Nothing is kept afterwards. */
export class SingleFlight<T> {
  /** Those that can still be joined, by key. */
  readonly #flights = new Map<string, Flight<T>>();

  /** The outcome of the work of that key, which is begun unless it runs already. Rejects with what it rejects with. */
  run(work: () => Promise<T>, key = ""): Promise<T> {
    return (this.#flights.get(key) ?? this.#begin(work, key)).outcome;
  }

  /** How many calls wait for work of that key that one more would join. */
  calls(key = ""): number {
    return this.#flights.get(key)?.calls ?? 0;
  }

  /**
   * The same for a call with a deadline of its own. The work is given up when no call waits for it any more.
   *
   * @param work calls `depart` when it begins to look: who asks after that begins anew, because what it sees may lack what
   * the caller knows to be there
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
    // Before the work begins: it may depart at once.
    this.#flights.set(key, flight);
    const depart = () => this.#depart(flight, key);
    Promise.try(work, flight.controller.signal, depart).finally(depart).then(resolve, reject);
    return flight;
  }

  /** From now on nobody joins it. */
  #depart(flight: Flight<T>, key: string): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}
