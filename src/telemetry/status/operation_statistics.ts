import type { Latency, OperationStatistics } from "./model.ts";

/** How things of several kinds go: how many, how many not well, how quickly. */
export class OperationStatisticsStore {
  readonly #kinds = new Map<string, { readonly latencies: Latencies; failed: number }>();

  readonly #all = new Latencies();

  /** @param ms how long it took; undefined for what was not even begun */
  add(kind: string, ms: number | undefined, isWell: boolean): void {
    let one = this.#kinds.get(kind);
    if (one === undefined) this.#kinds.set(kind, one = { latencies: new Latencies(), failed: 0 });
    if (ms !== undefined) { for (const latencies of [one.latencies, this.#all]) latencies.add(ms); }
    if (!isWell) one.failed++;
  }

  /** Of all kinds together. */
  readAll(): Latency {
    return this.#all.read();
  }

  /** Ordered by kind. */
  read(): readonly OperationStatistics[] {
    return [...this.#kinds].map(([name, { latencies, failed }]) => ({ name, failed, ...latencies.read() }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** The last so many things that happened, the latest first when read. */
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

/** How many of the last ones a {@linkcode Latencies} keeps: 2 KiB. */
const maxKept = 256;

/** How long things of one kind took lately: the histograms of the metrics are of all time, and of few bounds. */
export class Latencies {
  readonly #lastMs = new Float64Array(maxKept);
  #count = 0;

  add(ms: number): void {
    this.#lastMs[this.#count++ % maxKept] = ms;
  }

  read(): Latency {
    const sorted = this.#lastMs.slice(0, Math.min(this.#count, maxKept)).sort();
    const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
    return { count: this.#count, medianMs: at(0.5), p99Ms: at(0.99), slowestMs: at(1) };
  }
}
