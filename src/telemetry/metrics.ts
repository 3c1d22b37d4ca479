import { printable } from "../volume/model/printable.ts";

/** The description of a metric, for the documentation and for Prometheus. */
export interface MetricInfo {
  readonly type: "counter" | "gauge" | "histogram";
  /** Its help, as a sentence. */
  readonly help: string;
  /** Names of its labels; each has few values, all known beforehand. */
  readonly labels: readonly string[];
  /** The upper bounds of a histogram's buckets, the least first, without infinity. */
  readonly buckets?: readonly number[];
}

/** Metrics by name, in base units according to their names. */
export type MetricTable = Readonly<Record<string, MetricInfo>>;

/** Values of labels by name. */
export type Labels = Readonly<Record<string, string>>;

type NamesOf<Table extends MetricTable, Type extends MetricInfo["type"]> =
  & { [Name in keyof Table]: Table[Name]["type"] extends Type ? Name : never }[keyof Table]
  & string;

/** Counts values of a table's metrics. */
export interface Meter<Table extends MetricTable> {
  /** Adds to a counter; 0 makes it appear. */
  add(name: NamesOf<Table, "counter">, labels?: Labels, amount?: number): void;
  /** Sets a counter to the value of an external counter, such as the kernel's. */
  total(name: NamesOf<Table, "counter">, value: number, labels?: Labels): void;
  /** Sets a gauge. */
  set(name: NamesOf<Table, "gauge">, value: number, labels?: Labels): void;
  /** Removes a value with these labels that is unknown now. */
  drop(name: NamesOf<Table, "gauge" | "counter">, labels: Labels): void;
  /** Reads the value of a gauge at every scrape: it must be quick, and touch nothing that can hang. */
  read(name: NamesOf<Table, "gauge">, value: () => number, labels?: Labels): void;
  /** Adds a value to a histogram. */
  observe(name: NamesOf<Table, "histogram">, value: number, labels?: Labels): void;
}

/**
 * Counters, gauges and histograms of one driver, and their text for Prometheus (exposition format 0.0.4).
 *
 * It replaces a client library, which would bring its own gauges of the process. Those read files that the permissions
 * do not open, and take 2.5 MB of a node's memory.
 */
export class MetricRegistry {
  readonly #metrics = new Map<string, Metric>();
  readonly #tables = new Set<MetricTable>();
  readonly #readers: (() => void)[] = [];

  /**
   * Declares the metrics of a table. Declaring the same table again continues its counts.
   *
   * @param own labels that every value of this meter has; a metric without other labels appears at once, at zero
   * @throws {TypeError} when a name is declared by another table or the text format does not allow it
   */
  declare<Table extends MetricTable>(table: Table, own: Labels = {}): Meter<Table> {
    if (!this.#tables.has(table)) this.#declare(table);
    this.#tables.add(table);
    const get = (name: string) => this.#metrics.get(name)!;
    for (const name of Object.keys(table)) get(name).begin(own);
    return {
      add: (name, labels, amount = 1) => get(name).add({ ...labels, ...own }, amount),
      total: (name, value, labels) => get(name).set({ ...labels, ...own }, value),
      set: (name, value, labels) => get(name).set({ ...labels, ...own }, value),
      drop: (name, labels) => get(name).drop({ ...labels, ...own }),
      read: (name, value, labels) => get(name).read({ ...labels, ...own }, value),
      observe: (name, value, labels) => get(name).observe({ ...labels, ...own }, value),
    };
  }

  #declare(table: MetricTable): void {
    for (const [name, info] of Object.entries(table)) {
      if (this.#metrics.has(name) || !/^[a-z][a-z0-9_]*$/.test(name)) {
        throw new TypeError(`Cannot declare the metric ${name}`);
      }
      this.#metrics.set(name, new Metric(name, info));
    }
  }

  /** Calls `reader` right before values are shown: it must be quick, touch nothing that can hang, and not throw. */
  beforeExpose(reader: () => void): void {
    this.#readers.push(reader);
  }

  /** All metrics as text. */
  expose(): string {
    for (const reader of this.#readers) reader();
    return this.#metrics.values().map((metric) => metric.expose()).toArray().join("");
  }
}

/** One combination of labels: a value, or a histogram's counts. */
interface Series {
  readonly labels: Labels;
  value: number;
  count: number;
  readonly buckets: number[];
}

class Metric {
  readonly #name: string;
  readonly #info: MetricInfo;
  readonly #series = new Map<string, Series>();
  readonly #reads = new Map<Labels, () => number>();

  constructor(name: string, info: MetricInfo) {
    this.#name = name;
    this.#info = info;
  }

  /** Shows a metric at zero if it has no labels but its own. */
  begin(own: Labels): void {
    const { type, labels } = this.#info;
    const isWhole = labels.every((label) => Object.hasOwn(own, label));
    if (isWhole && (type !== "histogram" || labels.length === 0)) this.#at(own);
  }

  add(labels: Labels, amount: number): void {
    this.#at(labels).value += amount;
  }

  set(labels: Labels, value: number): void {
    this.#at(labels).value = value;
  }

  drop(labels: Labels): void {
    this.#series.delete(this.#keyOf(labels));
  }

  read(labels: Labels, value: () => number): void {
    this.#reads.set(labels, value);
  }

  observe(labels: Labels, value: number): void {
    const series = this.#at(labels);
    series.value += value;
    series.count++;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) series.buckets[at]!++;
  }

  expose(): string {
    for (const [labels, read] of this.#reads) this.#at(labels).value = read();
    const lines = [
      `# HELP ${this.#name} ${this.#info.help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${this.#name} ${this.#info.type}`,
      ...this.#series.values().flatMap((series) => this.#linesOf(series)),
    ];
    return lines.join("\n") + "\n";
  }

  get #bounds(): readonly number[] {
    return this.#info.buckets ?? [];
  }

  #keyOf(labels: Labels): string {
    return JSON.stringify(this.#info.labels.map((name) => labels[name] ?? ""));
  }

  #at(labels: Labels): Series {
    const key = this.#keyOf(labels);
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const own = Object.fromEntries(this.#info.labels.map((name) => [name, labels[name] ?? ""]));
    const series = { labels: own, value: 0, count: 0, buckets: this.#bounds.map(() => 0) };
    this.#series.set(key, series);
    return series;
  }

  #linesOf({ labels, value, count, buckets }: Series): string[] {
    if (this.#info.type !== "histogram") return [line(this.#name, labels, value)];
    let below = 0;
    const bucket = `${this.#name}_bucket`;
    return [
      ...buckets.map((inside, at) =>
        line(bucket, { ...labels, le: String(this.#bounds[at]) }, below += inside)
      ),
      line(bucket, { ...labels, le: "+Inf" }, count),
      line(`${this.#name}_sum`, labels, value),
      line(`${this.#name}_count`, labels, count),
    ];
  }
}

function line(name: string, labels: Labels, value: number): string {
  // Prometheus takes an empty label for none.
  const pairs = Object.entries(labels).filter(([, text]) => text !== "")
    .map(([label, text]) => `${label}="${escaped(text)}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}`;
}

function escaped(text: string): string {
  return printable(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
