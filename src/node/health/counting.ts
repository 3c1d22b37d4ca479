import { VolumeError } from "../../volume/errors.ts";
import type { NodeEvents } from "../../volume/ports/ports.ts";

/** Follows no longer chain of causes, so that one that bites its tail ends. */
const maxCauses = 8;

/** Runs an action, and counts it once when it is refused because what is there is not provably the volume. */
export async function countingMismatches<T>(events: NodeEvents, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (isMismatch(error)) events.happened({ kind: "identity-mismatch" });
    throw error;
  }
}

/** What could not be undone either comes as another error, with the reason as its cause. */
function isMismatch(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < maxCauses; at = at.cause, depth++) {
    if (VolumeError.is(at, "identity-mismatch")) return true;
  }
  return false;
}
