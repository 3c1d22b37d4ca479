import type { ControllerEvents } from "../volume/controller_events.ts";
import { figuresOf, type WholeLook } from "../volume/figures.ts";
import type { Clock } from "../volume/ports.ts";
import type { ControllerSettings } from "./world.ts";

/** The most of the time that goes into counting, however many volumes there are and however often they are looked at. */
const mostShare = 0.1;

/** What a {@linkcode CountedLooks} needs. */
export interface CountedLooksOptions {
  readonly clock: Clock;
  readonly events: Pick<ControllerEvents, "looked">;
  readonly settings: Pick<ControllerSettings, "cluster" | "basePaths" | "settleMs">;
}

/**
 * Counts what looks at the whole router have shown that calls and loops make for themselves. Of looks that come too fast
 * for that, the last one is counted when there is time.
 */
export class CountedLooks {
  readonly #options: CountedLooksOptions;
  #notBeforeMs = -Infinity;
  /** Counts the look that waits. */
  #waiting: (() => void) | undefined;
  #cancelTimer = () => {};

  constructor(options: CountedLooksOptions) {
    this.#options = options;
  }

  /** Counts a look, now or soon, unless disks may be missing in it. */
  seen(look: WholeLook): void {
    const { clock, events, settings } = this.#options;
    if (events.looked === undefined || look.upMs < settings.settleMs) return;
    const seenAtMs = clock.now();
    const waitMs = this.#notBeforeMs - clock.monotonicMs();
    if (waitMs <= 0) return this.#count(look, seenAtMs);
    if (this.#waiting === undefined) this.#cancelTimer = clock.timer(waitMs, () => this.#waiting?.());
    this.#waiting = () => this.#count(look, seenAtMs);
  }

  /** Forgets the look that waits. */
  close(): void {
    this.#cancelTimer();
    this.#waiting = undefined;
  }

  #count(look: WholeLook, seenAtMs: number): void {
    const { clock, events, settings } = this.#options;
    this.close();
    const startedMs = clock.monotonicMs();
    events.looked?.(figuresOf(look, settings.cluster, settings.basePaths), seenAtMs);
    const endedMs = clock.monotonicMs();
    this.#notBeforeMs = endedMs + (endedMs - startedMs) * (1 / mostShare - 1);
  }
}
