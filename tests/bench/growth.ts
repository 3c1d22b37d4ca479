/** Whether the requirement holds, and the numbers that say so. */
export interface Result {
  readonly flat: boolean;
  readonly text: string;
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
