import type { VolumeRecord } from "../model/record.ts";

/** What is known about the last withdrawal of an export. */
export interface GraceInput {
  readonly record: Pick<VolumeRecord, "withdrawnAtSeconds">;
  /** How long an export may linger on the router after it was withdrawn. */
  readonly graceMs: number;
  /** For how long this process has seen the export off, by a monotonic clock. */
  readonly ageMs: number;
}

/**
 * Milliseconds to wait before a new epoch, a delete or a copy, so that no forgotten connection of the last epoch can
 * still write.
 *
 * The record says only whether there was a withdrawal. Its time is not used: it is by the clock of the controller that
 * wrote it, and two controllers' clocks may differ by hours. Nor does a boot of the router end the grace: its uptime is as
 * old as its answer, and a boot takes longer.
 */
export function remainingGraceMs({ record, graceMs, ageMs }: GraceInput): number {
  return record.withdrawnAtSeconds === undefined ? 0 : Math.max(0, graceMs - ageMs);
}

/**
 * The time to record for a withdrawal that is about to be sent, in whole seconds: a moment in the future, because the
 * command takes effect after this is written.
 */
export function withdrawalSeconds(nowMs: number): number {
  return Math.ceil(nowMs / 1000) + 1;
}
