import { print } from "../../tools/print.ts";

/** Resident memory of a process after so much of what it serves. */
export interface Sample {
  /** Calls, or stages. */
  readonly done: number;
  readonly rssBytes: number;
  /** Since the first one. */
  readonly ms: number;
}

/** Takes samples of a process, and prints each. */
export class Samples {
  readonly taken: Sample[] = [];
  readonly #startMs = performance.now();
  readonly #residentBytes: () => Promise<number>;

  /** @param residentBytes asks for the memory of the process */
  constructor(residentBytes: () => Promise<number>) {
    this.#residentBytes = residentBytes;
  }

  /** @param done how many calls or stages there were */
  async take(done: number): Promise<void> {
    const rssBytes = await this.#residentBytes();
    const ms = performance.now() - this.#startMs;
    this.taken.push({ done, rssBytes, ms });
    const columns = [String(done).padStart(8), (rssBytes / 1e6).toFixed(1).padStart(7)];
    print(`${columns.join(" ")} MB ${(ms / 1e3).toFixed(1)} s`);
  }
}

/** Prints what is to be said of the samples; answers the exit code. */
export function report(subject: string, samples: readonly Sample[], required: Required): number {
  const result = judge(samples, required);
  print(`${subject}: ${result.flat ? "flat" : "NOT FLAT"}: ${result.text}`);
  return result.flat ? 0 : 1;
}

/** Whether the requirement holds, and the numbers that say so. */
export interface Result {
  readonly flat: boolean;
  readonly text: string;
}

/** What is required beside that the memory does not grow. */
export interface Required {
  /** The most that any sample may show. */
  readonly limitBytes: number;
  /** What is counted, in one word for one of it. */
  readonly of: string;
  /** Until here memory may grow: caches fill, the heap finds its size. @default {20000} */
  readonly warmUp?: number;
  /** Growth that is within what the heap breathes, for each one after the warm-up. @default {100} */
  readonly maxSlopeBytes?: number;
}

/**
 * The requirement: after the warm-up the memory stays flat (the line fitted through the later samples rises by less than so
 * many bytes each) and no sample is above the limit.
 */
export function judge(samples: readonly Sample[], required: Required): Result {
  const { limitBytes, of, warmUp = 20_000, maxSlopeBytes = 100 } = required;
  const later = samples.filter(({ done }) => done >= warmUp);
  const highest = Math.max(...samples.map(({ rssBytes }) => rssBytes));
  const peak = `highest ${(highest / 1e6).toFixed(1)} MB of ${limitBytes / 1e6}`;
  if (later.length < 3) {
    return {
      flat: highest <= limitBytes,
      text: `${peak}; too few samples after ${warmUp} for a slope`,
    };
  }
  const slope = slopeBytes(later);
  return {
    flat: highest <= limitBytes && slope < maxSlopeBytes,
    text: `${peak}; ${slope.toFixed(0)} bytes a ${of} after ${warmUp}`,
  };
}

/** Slope of the least-squares line. */
function slopeBytes(samples: readonly Sample[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanX = mean(samples.map(({ done }) => done));
  const meanY = mean(samples.map(({ rssBytes }) => rssBytes));
  const covariance = mean(samples.map(({ done, rssBytes }) => (done - meanX) * (rssBytes - meanY)));
  const variance = mean(samples.map(({ done }) => (done - meanX) ** 2));
  return covariance / variance;
}

/** A figure that was taken once a round, and what it may rise to. */
export interface Series {
  readonly of: string;
  readonly values: readonly number[];
  /** How many times as high the last third may be as the first. @default {1} */
  readonly factor?: number;
  /** How much higher it may be beside that. @default {0} */
  readonly more?: number;
}

/** Whether the median of a figure's last third is about that of its first. */
export function judgeSeries({ of, values, factor = 1, more = 0 }: Series): Result {
  const third = Math.max(1, Math.floor(values.length / 3));
  const [first, last] = [median(values.slice(0, third)), median(values.slice(-third))];
  return {
    flat: last <= first * factor + more,
    text: `${of}: ${round(first)} in the first third, ${round(last)} in the last, ` +
      `from ${round(Math.min(...values))} to ${round(Math.max(...values))}`,
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
