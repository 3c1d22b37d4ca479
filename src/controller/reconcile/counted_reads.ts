import type { ControllerEvents } from "../../volume/ports/controller_events.ts";
import { totalsOf, type WholeInventory } from "../../volume/rules/totals.ts";
import type { Clock } from "../../volume/ports/system.ts";
import type { ControllerSettings } from "../deps.ts";

/** The most of the time that goes into counting, however many volumes there are and however often they are looked at. */
const maxShare = 0.1;

/** How long a look waits at least until it is counted, in milliseconds: whoever made it is to be answered first. */
const minWaitMs = 50;

/** What a {@linkcode CountedReads} needs. */
export interface CountedReadsOptions {
  readonly clock: Clock;
  readonly events: ControllerEvents;
  readonly settings: Pick<ControllerSettings, "cluster" | "basePaths" | "settleMs">;
}

/**
 * Counts, a moment later, what looks at the whole router have shown that calls and loops make for themselves. Of looks that
 * come one upon the other the last one is counted.
 */
export class CountedReads {
  readonly #options: CountedReadsOptions;
  #notBeforeMs = -Infinity;
  /** Counts the look that waits. */
  #waiting: (() => void) | undefined;
  #cancelTimer = () => {};
  #isClosed = false;

  constructor(options: CountedReadsOptions) {
    this.#options = options;
  }

  /** Has a look counted soon, unless disks may be missing in it. */
  seen(reading: WholeInventory): void {
    const { clock, settings } = this.#options;
    if (this.#isClosed || reading.upMs < settings.settleMs) return;
    const seenAtMs = clock.now();
    const waitMs = Math.max(minWaitMs, this.#notBeforeMs - clock.monotonicMs());
    if (this.#waiting === undefined) this.#cancelTimer = clock.timer(waitMs, () => this.#waiting?.());
    this.#waiting = () => this.#count(reading, seenAtMs);
  }

  /** Counts nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#waiting = undefined;
  }

  #count(reading: WholeInventory, seenAtMs: number): void {
    const { clock, events, settings } = this.#options;
    this.#waiting = undefined;
    const startedMs = clock.monotonicMs();
    const totals = totalsOf(reading, settings.cluster, settings.basePaths);
    events.occurred({ kind: "inventory-read", totals, atMs: seenAtMs });
    const endedMs = clock.monotonicMs();
    this.#notBeforeMs = endedMs + (endedMs - startedMs) * (1 / maxShare - 1);
  }
}
