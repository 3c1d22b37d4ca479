import { timeLeftMs } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { remainingGraceMs } from "../../volume/rules/grace.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import type { ControllerCall } from "../deps.ts";
import { taken } from "../records/take.ts";
import { withdrawal } from "../records/steps.ts";

/**
 * Withdraws the export of a volume that no node holds any more, and returns it as read back: off, without holders, with
 * the time of the withdrawal. One command.
 *
 * @param knownCounter of the latest epoch that the cluster knows: the next one will be later
 */
export async function withdrawExport(
  call: ControllerCall,
  volume: OwnedVolume,
  verb: string,
  knownCounter = 0,
): Promise<OwnedVolume> {
  return await taken(call, verb, withdrawal(call, volume, knownCounter));
}

/**
 * What people are told of a volume that was withdrawn because its record is older than an epoch that the cluster knows, as when a
 * router has lost its last seconds: its holders were shut out, and the attachment that knows of the later epoch may be about to go.
 */
export function olderEpoch({ stored, record }: OwnedVolume, known: number) {
  const [volumeId, recorded, withdrawn] = [stored.id, record.epoch?.counter ?? 0, stored.exported];
  return { kind: "older-epoch", volumeId, recorded, known, withdrawn } as const;
}

/** For how long a connection of the last epoch can still be alive on the router, in milliseconds. */
export function graceLeftMs({ settings, memory }: ControllerCall, { record, stored }: OwnedVolume): number {
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
