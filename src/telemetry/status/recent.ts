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

/** How long things took, in milliseconds. */
export interface Latency {
  /** How many there were since the start, not only those that the rest is of. */
  readonly count: number;
  /** Half of the last ones were at least as quick; undefined where there was none. */
  readonly medianMs: number | undefined;
  /** 99 of 100 of the last ones were at least as quick. */
  readonly p99Ms: number | undefined;
  /** The slowest of the last ones. */
  readonly slowestMs: number | undefined;
}

/** How many of the last ones a {@linkcode Latencies} keeps: 2 KiB. */
const mostKept = 256;

/** How long things of one kind took lately: the histograms of the metrics are of all time, and of few bounds. */
export class Latencies {
  readonly #lastMs = new Float64Array(mostKept);
  #count = 0;

  add(ms: number): void {
    this.#lastMs[this.#count++ % mostKept] = ms;
  }

  read(): Latency {
    const sorted = this.#lastMs.slice(0, Math.min(this.#count, mostKept)).sort();
    const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
    return { count: this.#count, medianMs: at(0.5), p99Ms: at(0.99), slowestMs: at(1) };
  }
}
