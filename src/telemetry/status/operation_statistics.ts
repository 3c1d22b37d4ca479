import { Latencies, type Latency } from "./recent.ts";
import type { Course } from "./model.ts";

/** How things of several kinds go: how many, how many not well, how quickly. */
export class Courses {
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
  read(): readonly Course[] {
    return [...this.#kinds].map(([name, { latencies, failed }]) => ({ name, failed, ...latencies.read() }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }
}
