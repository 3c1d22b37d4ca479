import type { VolumeRecord } from "./record.ts";

/** How far ahead of the clock a withdrawal may be recorded and still be believed, in milliseconds. */
const aheadMs = 5_000;
/** Uptime is told in whole seconds; this much more makes sure that the boot really came later. */
const bootMarginMs = 2_000;

/** What is known about the last withdrawal of an export. */
export interface GraceInput {
  readonly record: Pick<VolumeRecord, "withdrawnAtSeconds">;
  /** The controller's clock, milliseconds since the Unix epoch. */
  readonly nowMs: number;
  /** How long an export may linger on the router after it was withdrawn. */
  readonly graceMs: number;
  /** How long the router has been up: a reboot ends every lingering export. */
  readonly upMs: number;
  /** Whether the export may have gone off later than is recorded. */
  readonly doubtful: boolean;
  /** How long ago it was seen to be off, by a clock that nobody sets; Infinity when this process has not seen that. */
  readonly confirmedAgeMs: number;
}

/**
 * Milliseconds to wait before a new epoch, a delete or a copy, so that no forgotten connection of the last epoch can
 * still be written through.
 *
 * A time in the future, one that cannot be read and a doubtful one wait the whole grace from now. A clock that was set since
 * shortens nothing that this process has seen itself.
 */
export function remainingGraceMs(input: GraceInput): number {
  const withdrawnAt = input.record.withdrawnAtSeconds;
  if (withdrawnAt === undefined || input.graceMs === 0) return 0;
  return Math.max(remainingByClock(input, withdrawnAt * 1000), remainingByAge(input));
}

function remainingByAge({ confirmedAgeMs, graceMs, upMs }: GraceInput): number {
  const hasBooted = upMs + bootMarginMs < confirmedAgeMs;
  return hasBooted ? 0 : Math.max(0, graceMs - confirmedAgeMs);
}

function remainingByClock(input: GraceInput, withdrawnAtMs: number): number {
  if (withdrawnAtMs > input.nowMs + aheadMs) return input.graceMs;
  if (input.nowMs - input.upMs - bootMarginMs > withdrawnAtMs) return 0;
  if (input.doubtful) return input.graceMs;
  return Math.max(0, withdrawnAtMs + input.graceMs - input.nowMs);
}

/**
 * The time to record for a withdrawal that is about to be sent, in whole seconds: a moment ahead, because the command
 * takes effect only after this is written.
 */
export function withdrawalSeconds(nowMs: number): number {
  return Math.ceil(nowMs / 1000) + 1;
}
