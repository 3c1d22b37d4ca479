import { runLimited } from "../../async/deadline.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** How long an answer may take, and how long to wait before asking again, in milliseconds. */
const answerMs = 30_000;
const pauseMs = 10_000;

/** Whether what a driver needs has answered since it started. Later failures show in its own calls. */
export class FirstAnswer {
  readonly #ask: (context: CallContext) => Promise<void>;
  #isIn = false;
  /** When a question without an answer was repeated. */
  #askedMs: number | undefined;

  /** @param ask resolves when what is needed can be reached and is fit for this driver */
  constructor(ask: (context: CallContext) => Promise<void>) {
    this.#ask = ask;
  }

  /** Whether any caller has had an answer. */
  get isIn(): boolean {
    return this.#isIn;
  }

  /** Asks once, for a caller that needs the answer now. */
  async ask(context: CallContext): Promise<void> {
    await this.#ask(context);
    this.#isIn = true;
  }

  /**
   * Asks again without waiting, unless a question is under way. Returns for how long that has been unanswered, in
   * milliseconds.
   */
  askAgain(clock: Clock, signal: AbortSignal): number {
    if (this.#askedMs !== undefined) return clock.monotonicMs() - this.#askedMs;
    if (!this.#isIn || signal.aborted) return 0;
    this.#askedMs = clock.monotonicMs();
    const about = { name: "readiness", timeoutMs: answerMs, signal };
    void runLimited(clock, about, (context) => this.#ask(context)).catch(() => {}).finally(() => {
      this.#askedMs = undefined;
    });
    return 0;
  }

  /** Asks until there is an answer or `signal` is aborted. Failures are logged by the code that is asked. */
  async seek(clock: Clock, signal: AbortSignal): Promise<void> {
    while (!this.#isIn && !signal.aborted) {
      try {
        await runLimited(
          clock,
          { name: "start", timeoutMs: answerMs, signal },
          (context) => this.ask(context),
        );
      } catch {
        // The driver's probes report a fault; the loop must not end because of it.
        await clock.sleep(pauseMs, signal).catch(() => {}); // Aborted: the loop's condition ends it.
      }
    }
  }
}
