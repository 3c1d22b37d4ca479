import type { CallContext, Clock } from "../../volume/ports/ports.ts";
import { within } from "../within.ts";

/**
 * An answer that is looked up at most once at a time and kept for a while, so that many askers cause no more work than
 * one. A failure is kept by nobody.
 */
export class RecentAnswer<T> {
  readonly #clock: Clock;
  readonly #keptMs: number;
  readonly #limitMs: number;
  readonly #lookUp: (context: CallContext) => Promise<T>;
  #answer: { readonly value: T; readonly atMs: number } | undefined;
  #underWay: Promise<T> | undefined;

  /**
   * @param keptMs how long an answer is good, in milliseconds
   * @param limitMs how long a look-up may take, in milliseconds; it is nobody's call, so that none ends it
   */
  constructor(
    clock: Clock,
    { keptMs, limitMs }: { readonly keptMs: number; readonly limitMs: number },
    lookUp: (context: CallContext) => Promise<T>,
  ) {
    this.#clock = clock;
    this.#keptMs = keptMs;
    this.#limitMs = limitMs;
    this.#lookUp = lookUp;
  }

  /**
   * The answer, a recent one if there is one.
   *
   * @throws {VolumeError} deadline when the look-up takes too long; the reason of the call's end; whatever it throws
   */
  async get(context: CallContext): Promise<T> {
    context.signal.throwIfAborted();
    const known = this.#answer;
    if (known !== undefined && this.#clock.monotonicMs() - known.atMs < this.#keptMs) return known.value;
    this.#underWay ??= this.#begin();
    const answer = this.#underWay;
    return await within(this.#clock, context, this.#limitMs, "wait for the answer", () => answer);
  }

  async #begin(): Promise<T> {
    const own: CallContext = {
      requestId: "shared",
      signal: new AbortController().signal,
      deadlineMs: Infinity,
    };
    try {
      const value = await within(this.#clock, own, this.#limitMs, "look it up", this.#lookUp);
      this.#answer = { value, atMs: this.#clock.monotonicMs() };
      return value;
    } finally {
      this.#underWay = undefined;
    }
  }
}
