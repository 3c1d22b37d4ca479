import type { RouterBehaviours } from "./answers.ts";

/** How long to wait for a router, as far as its answers show, in milliseconds. */
export interface Waits {
  /** How long after its boot it may still bring disks back; undefined when that is not known. */
  readonly settleMs: number | undefined;
  /** How long an export may linger after its withdrawal; undefined when that is not known. */
  readonly unexportGraceMs: number | undefined;
}

/** Waits with a margin above what was measured once: waiting too briefly can lose a volume, waiting too long cannot. */
export function waitsFor({ disksLate, unexport }: Partial<RouterBehaviours>): Waits {
  return {
    settleMs: disksLate === undefined ? undefined : Math.max(30_000, disksLate * 1.5 + 10_000),
    unexportGraceMs: unexport === undefined ? undefined : Math.max(1000, unexport * 2),
  };
}
