import type { Random } from "../../volume/ports/ports.ts";

/** Bounds of an exponential backoff. */
export interface BackoffOptions {
  /** The first delay in milliseconds, before jitter. */
  readonly firstMs: number;
  /** The longest delay in milliseconds. */
  readonly mostMs: number;
}

/**
 * The delay before the next try after `failures` in a row: doubling, with the upper half of it random, so that several
 * clients of one router do not knock in step. Zero failures wait for nothing.
 */
export function backoffMs(failures: number, random: Random, options: BackoffOptions): number {
  if (failures <= 0) return 0;
  const full = Math.min(options.mostMs, options.firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(full / 2 + random.fraction() * full / 2);
}
