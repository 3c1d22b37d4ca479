/** Resident memory of a process after so much of what it serves. */
export interface Sample {
  /** Connections, or calls. */
  readonly done: number;
  readonly rssBytes: number;
  /** Since the first one. */
  readonly ms: number;
}

/** Whether the requirement holds, and the numbers that say so. */
export interface Verdict {
  readonly flat: boolean;
  readonly text: string;
}

/** What is required beside that the memory does not grow. */
export interface Required {
  /** The most that any sample may show. */
  readonly limitBytes: number;
  /** What is counted, in one word for one of it. */
  readonly of: string;
}

/** Until here memory may grow: caches fill, the heap finds its size. */
const WARM_UP = 20_000;

/** Growth that is within what the heap breathes, for each one after the warm-up. */
const MAX_SLOPE_BYTES = 100;

/**
 * The requirement: after the first 20,000 the memory stays flat (the line fitted through the later samples rises by less
 * than 100 bytes each) and no sample is above the limit.
 */
export function judge(samples: readonly Sample[], { limitBytes, of }: Required): Verdict {
  const later = samples.filter(({ done }) => done >= WARM_UP);
  const highest = Math.max(...samples.map(({ rssBytes }) => rssBytes));
  const peak = `highest ${(highest / 1e6).toFixed(1)} MB of ${limitBytes / 1e6}`;
  if (later.length < 3) {
    return {
      flat: highest <= limitBytes,
      text: `${peak}; too few samples after ${WARM_UP} for a slope`,
    };
  }
  const slope = slopeBytes(later);
  return {
    flat: highest <= limitBytes && slope < MAX_SLOPE_BYTES,
    text: `${peak}; ${slope.toFixed(0)} bytes a ${of} after ${WARM_UP}`,
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
