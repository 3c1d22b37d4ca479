import type { RouterBehaviours } from "./answers.ts";

/**
 * How long an export may linger after its withdrawal, in milliseconds; undefined when that is not known. The margin is above
 * what was measured once: waiting too briefly can lose a volume, waiting too long cannot.
 */
export function unexportGraceFor({ unexport }: Partial<RouterBehaviours>): number | undefined {
  return typeof unexport === "number" ? Math.max(1000, unexport * 2) : undefined;
}
