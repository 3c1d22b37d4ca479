/** Resident memory of the server after so many connections. */
export interface Sample {
  readonly connections: number;
  readonly rssBytes: number;
  /** Since the first connection. */
  readonly ms: number;
}

/** Whether the requirement holds, and the numbers that say so. */
export interface Verdict {
  readonly flat: boolean;
  readonly text: string;
}

/** Until here memory may grow: caches fill, the heap finds its size. */
const WARM_UP_CONNECTIONS = 20_000;

const LIMIT_BYTES = 110e6;

/** Growth that is within what the heap breathes, per connection after the warm-up. */
const MAX_SLOPE_BYTES = 100;

/**
 * The requirement: after the first 20,000 short connections the memory stays flat (the line fitted through the later
 * samples rises by less than 100 bytes a connection) and no sample is above 110 MB.
 */
export function judge(samples: readonly Sample[]): Verdict {
  const later = samples.filter((sample) => sample.connections >= WARM_UP_CONNECTIONS);
  const highest = Math.max(...samples.map((sample) => sample.rssBytes));
  const peak = `highest ${(highest / 1e6).toFixed(1)} MB of ${LIMIT_BYTES / 1e6}`;
  if (later.length < 3) {
    return {
      flat: highest <= LIMIT_BYTES,
      text: `${peak}; too few samples after ${WARM_UP_CONNECTIONS} for a slope`,
    };
  }
  const slope = slopeBytes(later);
  return {
    flat: highest <= LIMIT_BYTES && slope < MAX_SLOPE_BYTES,
    text: `${peak}; ${slope.toFixed(0)} bytes a connection after ${WARM_UP_CONNECTIONS}`,
  };
}

/** Slope of the least-squares line. */
function slopeBytes(samples: readonly Sample[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanX = mean(samples.map((sample) => sample.connections));
  const meanY = mean(samples.map((sample) => sample.rssBytes));
  const covariance = mean(samples.map((s) => (s.connections - meanX) * (s.rssBytes - meanY)));
  const variance = mean(samples.map((s) => (s.connections - meanX) ** 2));
  return covariance / variance;
}
