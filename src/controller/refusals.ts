import type { ClaimRef, ControllerEvent } from "../volume/ports/controller_events.ts";
import { VolumeError, type VolumeErrorKind } from "../volume/errors.ts";
import type { ControllerDeps } from "./deps.ts";

/** Refusals of an attachment that a retry does not mend. */
const lastingKinds: ReadonlySet<VolumeErrorKind> = new Set([
  "published-elsewhere",
  "exists-incompatible",
  "node-unknown",
  "precondition",
  "exhausted",
]);

/** The event for a node that was refused a volume; undefined when another try may go well. */
export function attachRefusal(
  volumeId: string,
  nodeId: string,
  error: VolumeError,
): ControllerEvent | undefined {
  if (!lastingKinds.has(error.kind)) return undefined;
  return { kind: "attach-refused", volumeId, nodeId, message: error.message };
}

/** The event for a pool that is full; undefined for any other error, or when there is no object yet to report it on. */
export function spaceRefusal(
  about: string | ClaimRef | undefined,
  error: VolumeError,
): ControllerEvent | undefined {
  if (error.kind !== "exhausted" || about === undefined) return undefined;
  return { kind: "out-of-space", about, message: error.message };
}

/** Runs `work` and returns its result. Reports a refusal that people can mend, then rethrows it. */
export async function reportingRefusal<T>(
  deps: Pick<ControllerDeps, "events">,
  eventOf: (error: VolumeError) => ControllerEvent | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const event = VolumeError.is(error) ? eventOf(error) : undefined;
    if (event !== undefined) deps.events.occurred(event);
    throw error;
  }
}
