import type { VolumeError } from "../errors.ts";

/** A write that the router has certainly not got. */
export interface NotSent {
  /** Why, for whoever cannot do without it. */
  readonly notSent: VolumeError;
}

/** What came of a write. @throws {VolumeError} the reason why the router has certainly not got it */
export function sent<Outcome extends object>(outcome: Outcome | NotSent): Outcome {
  if ("notSent" in outcome) throw outcome.notSent;
  return outcome;
}

/** The same; undefined when the router has certainly not got it. */
export function ifSent<Outcome extends object>(outcome: Outcome | NotSent): Outcome | undefined {
  return "notSent" in outcome ? undefined : outcome;
}
