import { runLimited } from "../async/deadline.ts";
import { VolumeError } from "../volume/errors.ts";
import { messageOf } from "../volume/error_messages.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { ControllerDeps } from "./deps.ts";

/** How a {@linkcode PeriodicLoop} goes on. */
export interface Period {
  /** What it does, for the log. */
  readonly name: string;
  /** How long it rests, in milliseconds; 0: it never begins. */
  readonly intervalMs: number;
  /** Over how long a time the loops of several routers and controllers spread their first turns, in milliseconds. */
  readonly spreadMs: number;
  /** How long one turn may take, in milliseconds. */
  readonly timeoutMs: number;
  /** How long it rests after a turn that took longer, in milliseconds. @default {intervalMs} */
  readonly afterTimeoutMs?: number;
  /** How long it rests at most after another failure, in milliseconds. @default {intervalMs} */
  readonly afterFailureMs?: number;
  /** The warning when a turn fails. */
  readonly complaint: string;
}

/** How long after its start the first turn comes at the earliest, in milliseconds: when the controller has settled in. */
const firstMs = 60_000;

/** What a controller does from time to time, beside all calls. */
export abstract class PeriodicLoop {
  readonly #deps: Pick<ControllerDeps, "clock" | "random" | "notes">;
  readonly #period: Period;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(deps: Pick<ControllerDeps, "clock" | "random" | "notes">, period: Period) {
    this.#deps = deps;
    this.#period = period;
  }

  /** Begins to {@linkcode run} until it is closed. */
  start(): void {
    this.#running = this.run(this.#stop.signal);
  }

  /** Ends it, and waits until nothing of it is under way. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the controller stops"));
    await this.#running;
  }

  /** Goes on until the signal ends it. What an earlier run has found counts for nothing: another controller may have led. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs, spreadMs } = this.#period;
    if (intervalMs === 0) return;
    const { clock, random } = this.#deps;
    let waitMs = Math.min(firstMs, intervalMs) + random.fraction() * Math.min(spreadMs, intervalMs);
    try {
      while (!signal.aborted) {
        await clock.sleep(waitMs, signal);
        waitMs = await this.#tryTurn(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.forget();
      this.ended();
    }
  }

  /** Returns how long to rest, in milliseconds. */
  async #tryTurn(signal: AbortSignal): Promise<number> {
    const { clock, notes } = this.#deps;
    const { name, intervalMs, timeoutMs, complaint } = this.#period;
    const { afterTimeoutMs = intervalMs, afterFailureMs = intervalMs } = this.#period;
    try {
      const about = { name, timeoutMs, signal };
      return await runLimited(clock, about, (context) => this.turn(context)) ?? intervalMs;
    } catch (error) {
      if (signal.aborted) throw error;
      notes.warn(complaint, { reason: messageOf(error) });
      return VolumeError.is(error, "deadline") ? afterTimeoutMs : Math.min(intervalMs, afterFailureMs);
    }
  }

  /** One turn. It may say how long to rest after it, in milliseconds. */
  protected abstract turn(context: CallContext): Promise<number | undefined>;

  /** Forgets what turns have found. */
  protected abstract forget(): void;

  /** Reports that nothing is known any more. */
  protected abstract ended(): void;
}
