import { timeLeftMs } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { remainingGraceMs } from "../../volume/rules/grace.ts";
import type { ControllerCall } from "../deps.ts";

/** For how long a connection of the last epoch can still be alive on the router, in milliseconds. */
export function graceLeftMs(
  { settings, memory }: ControllerCall,
  { record, stored }: Pick<OwnedVolume, "record" | "stored">,
): number {
  return remainingGraceMs({ record, graceMs: settings.unexportGraceMs, ageMs: memory.off.ageMs(stored) });
}

/**
 * Waits until no connection of the last epoch can still be alive on the router.
 *
 * @returns whether it had to wait: what was read of the volume before may be wrong then
 * @throws {VolumeError} unavailable at once when the call's deadline comes first
 */
export async function waitForGrace(
  call: ControllerCall,
  volume: OwnedVolume,
  verb: string,
): Promise<boolean> {
  const waitMs = graceLeftMs(call, volume);
  if (waitMs === 0) return false;
  if (waitMs >= timeLeftMs(call.context, call.clock)) {
    throw new VolumeError(
      "unavailable",
      `Cannot ${verb} the volume yet because its last export was withdrawn only a moment ago: volume=${volume.stored.id}; ` +
        `try again in ${Math.ceil(waitMs / 1000)} s (--unexport-grace)`,
    );
  }
  await call.clock.sleep(waitMs, call.context.signal);
  return true;
}
