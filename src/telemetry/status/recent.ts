import type { Latency } from "./model.ts";

/** The last so many items, the latest first when read. */
export class Recent<T> {
  readonly #most: number;
  readonly #things: T[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  add(thing: T): void {
    this.#things.push(thing);
    if (this.#things.length > this.#most) this.#things.shift();
  }

  latestFirst(): readonly T[] {
    return this.#things.toReversed();
  }
}

/** The number of last values that a {@linkcode Latencies} keeps: 2 KiB. */
const maxKept = 256;

/** Recent durations: the histograms of the metrics cover all time, with few bounds. */
export class Latencies {
  readonly #lastMs = new Float64Array(maxKept);
  #count = 0;

  add(ms: number): void {
    this.#lastMs[this.#count++ % maxKept] = ms;
  }

  read(): Latency {
    const sorted = this.#lastMs.slice(0, Math.min(this.#count, maxKept)).sort();
    const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
    return { count: this.#count, medianMs: at(0.5), p99Ms: at(0.99) };
  }
}
