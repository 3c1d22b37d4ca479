import { runLimited } from "../../async/deadline.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** How long an answer may take, and how long to wait before asking again, in milliseconds. */
const answerMs = 30_000;
const pauseMs = 10_000;

/** Whether what a driver needs has answered since it started. What happens later is for its client to tell. */
export class FirstAnswer {
  readonly #ask: (context: CallContext) => Promise<void>;
  #isIn = false;
  /** When what is not answered yet was asked again. */
  #askedMs: number | undefined;

  /** @param ask resolves when what is needed can be reached and is fit for this driver */
  constructor(ask: (context: CallContext) => Promise<void>) {
    this.#ask = ask;
  }

  /** Whether it has answered any caller. */
  get isIn(): boolean {
    return this.#isIn;
  }

  /** Asks once, for a caller that needs the answer now. */
  async ask(context: CallContext): Promise<void> {
    await this.#ask(context);
    this.#isIn = true;
  }

  /**
   * Asks once more without waiting, unless that is under way, and returns for how long that has not been answered, in
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

  /** Asks until it answers or `signal` is aborted. Why it did not is told by whoever logs what is asked. */
  async seek(clock: Clock, signal: AbortSignal): Promise<void> {
    while (!this.#isIn && !signal.aborted) {
      try {
        await runLimited(
          clock,
          { name: "start", timeoutMs: answerMs, signal },
          (context) => this.ask(context),
        );
      } catch {
        // A fault is told to whoever probes the driver; this is no place to end it for one.
        await clock.sleep(pauseMs, signal).catch(() => {}); // Aborted: the condition sees it.
      }
    }
  }
}
