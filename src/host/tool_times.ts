import type { Clock } from "../volume/ports/ports.ts";

/** Hears how long tools run. */
export interface ToolListener {
  /** One run of a tool ended, or was left behind. */
  toolRan(tool: string, seconds: number): void;
  /** For so long at least one tool ran, and now none does. */
  toolsRested(seconds: number): void;
}

/** Measures tools, which may run at the same time. */
export class ToolTimes {
  readonly #clock: Clock;
  readonly #listener: ToolListener;
  #running = 0;
  #busySinceMs = 0;

  constructor(clock: Clock, listener: ToolListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  /** A run began, just now or then; answers how to say that it ended, which counts once. */
  begin(tool: string, beganMs: number = this.#clock.monotonicMs()): () => void {
    if (this.#running++ === 0) this.#busySinceMs = beganMs;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const nowMs = this.#clock.monotonicMs();
      this.#listener.toolRan(tool, (nowMs - beganMs) / 1000);
      if (--this.#running === 0) this.#listener.toolsRested((nowMs - this.#busySinceMs) / 1000);
    };
  }
}
