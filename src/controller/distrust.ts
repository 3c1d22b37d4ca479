import type { ControllerDeps } from "./deps.ts";

/**
 * At the begin of a lead: commands that the earlier leader has sent may still run, and its promises and changes are
 * unknown.
 */
export function distrust({ inDoubt, known, promised }: ControllerDeps): void {
  inDoubt.suspectOthers();
  promised.forget();
  known.forgetAll();
}
