import type { VolumeRecord } from "../model/record.ts";

/** Routers report the uptime in whole seconds; this margin makes sure that the boot really came later. */
const bootMarginMs = 2_000;

/** What is known about the last withdrawal of an export. */
export interface GraceInput {
  readonly record: Pick<VolumeRecord, "withdrawnAtSeconds">;
  /** How long an export may linger on the router after it was withdrawn. */
  readonly graceMs: number;
  /** How long the router has been up: a reboot ends every lingering export. */
  readonly upMs: number;
  /** For how long this process has seen the export off, by a monotonic clock. */
  readonly ageMs: number;
}

/**
 * Milliseconds to wait before a new epoch, a delete or a copy, so that no forgotten connection of the last epoch can
 * still write.
 *
 * The record says only whether there was a withdrawal. Its time is not used: it is by the clock of the controller that
 * wrote it, and two controllers' clocks may differ by hours.
 */
export function remainingGraceMs({ record, graceMs, upMs, ageMs }: GraceInput): number {
  if (record.withdrawnAtSeconds === undefined || graceMs === 0) return 0;
  const hasBooted = upMs + bootMarginMs < ageMs;
  return hasBooted ? 0 : Math.max(0, graceMs - ageMs);
}

/**
 * The time to record for a withdrawal that is about to be sent, in whole seconds: a moment in the future, because the
 * command takes effect after this is written.
 */
export function withdrawalSeconds(nowMs: number): number {
  return Math.ceil(nowMs / 1000) + 1;
}
