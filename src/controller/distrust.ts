import type { ControllerDeps } from "./deps.ts";

/**
 * At the begin of a lead that another controller may have had before: commands that it has sent may still run, and its
 * promises and changes are unknown.
 */
export function distrust(deps: ControllerDeps): void {
  deps.inDoubt.suspectOthers();
  forget(deps);
}

/** When a lead that ran out goes on: nobody else has sent anything, but what is known may have aged meanwhile. */
export function forget({ known, promised }: ControllerDeps): void {
  promised.forget();
  known.forgetAll();
}
