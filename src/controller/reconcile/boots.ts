import { duringCall } from "../../async/waiting.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** How long calls wait for the round after a boot, in milliseconds from its first answer. */
const maxHoldMs = 10_000;

/**
 * The boots of one router, and whether a round of the reconcile loop has compared it with the cluster since the last one: until
 * then its records may be older than what nodes were given, and a node that was fenced may have its export back.
 *
 * A loop that begins counts as a boot, because its process does not know what happened before. Without a loop, as without a
 * cluster and on a replica that does not lead, there is nothing to wait for.
 */
export class RouterBoots {
  readonly #clock: Clock;
  #loops = 0;
  #count = 0;
  #isCompared = true;
  /** Calls wait for its promise; undefined while they need not. */
  #hold: (PromiseWithResolvers<void> & { readonly cancelTimer: () => void }) | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many there were. */
  get count(): number {
    return this.#count;
  }

  /** Whether a round is over that began after the last one, and left out no volume. */
  get isCompared(): boolean {
    return this.#isCompared;
  }

  /** A loop begins: from now on calls wait for its rounds. Returns a function to be called at its end. */
  begin(): () => void {
    this.#loops++;
    this.noticed();
    return () => {
      if (--this.#loops === 0) this.release();
    };
  }

  /** The router's last answer was its first one since a boot: a round is to begin at once. */
  noticed(): void {
    this.#count++;
    if (this.#loops === 0) return;
    this.#isCompared = false;
    const cancelTimer = this.#clock.timer(maxHoldMs, () => this.release());
    this.#hold?.cancelTimer();
    this.#hold = { ...this.#hold ?? Promise.withResolvers<void>(), cancelTimer };
    this.#wake.resolve();
  }

  /**
   * The records have been compared, as they were after so many boots.
   *
   * @param isComplete whether no call kept a volume from being withdrawn
   */
  compared(count: number, isComplete: boolean): void {
    // In later rounds a record that was read before the cluster may only look older.
    if (count !== this.#count || this.#isCompared) return;
    this.#isCompared = isComplete;
    this.#wake = Promise.withResolvers();
    this.release();
  }

  /** Calls go on. */
  release(): void {
    this.#hold?.cancelTimer();
    this.#hold?.resolve();
    this.#hold = undefined;
  }

  /** Rests between two rounds, but no longer than until a boot. */
  async rest(ms: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const sleeping = this.#clock.sleep(ms, AbortSignal.any([signal, over.signal])).catch(() => {
      // Only the signals end a sleep, and the loop asks its own.
    });
    await Promise.race([this.#wake.promise, sleeping]);
    over.abort();
  }

  /** A round begins: only what is noticed from now on cuts the rest after it short. */
  roundBegins(): void {
    this.#wake = Promise.withResolvers();
  }

  /**
   * Reads the router for a call, and once more after the round where the answer is the first one since a boot, or came
   * before that round was over. No command more on a router that has not booted.
   *
   * @throws {VolumeError} deadline or cancelled when the call ends first; whatever the read throws
   */
  async read<T>(read: () => Promise<T>, context: CallContext): Promise<T> {
    for (;;) {
      if (this.#hold !== undefined) await duringCall(this.#hold.promise, context.signal);
      const count = this.#count;
      const answer = await read();
      if (this.#count === count || this.#loops === 0) return answer;
    }
  }
}
