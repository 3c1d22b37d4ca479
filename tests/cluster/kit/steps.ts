import assert from "node:assert/strict";
import { percentile } from "../../bench/rpc.ts";
import { until } from "./waiting.ts";

/** How often objects are read, in milliseconds: times are no more precise than that. */
const everyMs = 50;

/** Seconds since the beginning of a round after which each step was done. */
export type Steps = Readonly<Record<string, number>>;

/** How {@linkcode watchSteps} waits. */
export interface StepsWaiting {
  readonly limitSeconds: number;
  readonly signal: AbortSignal;
  /** What has gone wrong so far, for people. */
  readonly trouble: () => Promise<string>;
}

/**
 * Waits until all steps are done, and returns when each was; only unfinished ones are checked.
 *
 * @param started the beginning of the round, a `performance.now()`
 * @throws {Error} when one is not done in time
 */
export async function watchSteps(
  started: number,
  steps: Readonly<Record<string, () => Promise<boolean>>>,
  { limitSeconds, signal, trouble }: StepsWaiting,
): Promise<Steps> {
  const done: Record<string, number> = {};
  const open = new Map(Object.entries(steps));
  await until("all steps", async () => {
    await Promise.all([...open].map(async ([name, isDone]) => {
      if (!await isDone()) return;
      done[name] = (performance.now() - started) / 1000;
      open.delete(name);
    }));
    return open.size === 0;
  }, {
    limitSeconds,
    everyMs,
    signal,
    state: async () => `open: ${[...open.keys()].join(", ")}; ${await trouble()}`,
  });
  return done;
}

/**
 * Returns the medians of all steps, as `bound 1.0 s, running 4.0 s`.
 *
 * @throws {AssertionError} when there are none, or one is above the limit
 */
export function judged(all: readonly Steps[], limitSeconds: number): string {
  const medians = Object.keys(all[0] ?? {})
    .map((name) => [name, percentile(all.map((steps) => steps[name]!), 0.5)] as const)
    .toSorted(([, one], [, other]) => one - other);
  const showed = `medians of ${all.length}: ${
    medians.map(([name, seconds]) => `${name} ${seconds.toFixed(1)} s`).join(", ")
  }`;
  assert(medians.length > 0 && medians.every(([, seconds]) => seconds <= limitSeconds), showed);
  return showed;
}
