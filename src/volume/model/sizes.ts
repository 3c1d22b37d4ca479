import { VolumeError } from "../errors.ts";

/** One MiB: sizes are rounded up to it. */
export const mebibyte = 1n << 20n;
/** One GiB: the smallest volume, unless the request's limit is lower. */
export const minimumSizeBytes = 1n << 30n;

/** A requested size range in bytes; 0 means that the request leaves the bound open. */
export interface SizeRange {
  readonly requiredBytes: bigint;
  readonly limitBytes: bigint;
}

/**
 * Checks a range by itself.
 *
 * @throws {VolumeError} invalid when a bound is negative, out-of-range when the limit is below the required size
 */
export function assertSizeRange(range: SizeRange): void {
  if (range.requiredBytes < 0n || range.limitBytes < 0n) {
    throw new VolumeError(
      "invalid",
      `Cannot use the capacity range because a size is negative: ${describe(range)}`,
    );
  }
  if (range.limitBytes > 0n && range.limitBytes < range.requiredBytes) {
    throw new VolumeError(
      "out-of-range",
      `Cannot use the capacity range because its limit is below it: ${describe(range)}`,
    );
  }
}

/**
 * The size of a new volume, in bytes: the required size rounded up to MiB, at least 1 GiB unless the limit is lower.
 *
 * @throws {VolumeError} invalid or out-of-range when no such size exists
 */
export function chooseSize(range: SizeRange): bigint {
  assertSizeRange(range);
  const floor = range.limitBytes > 0n && range.limitBytes < minimumSizeBytes
    ? range.limitBytes / mebibyte * mebibyte
    : minimumSizeBytes;
  const wanted = roundUp(range.requiredBytes);
  const size = wanted > floor ? wanted : floor;
  if (size === 0n || (range.limitBytes > 0n && size > range.limitBytes)) {
    throw new VolumeError(
      "out-of-range",
      `Cannot choose a size because whole MiB do not fit into the capacity range: ${describe(range)}`,
    );
  }
  return size;
}

/**
 * The size of a volume made from another volume or a snapshot, in bytes: never smaller than the source.
 *
 * @throws {VolumeError} invalid or out-of-range when no such size exists
 */
export function chooseCloneSize(range: SizeRange, sourceBytes: bigint): bigint {
  assertSizeRange(range);
  const size = range.requiredBytes > sourceBytes ? roundUp(range.requiredBytes) : sourceBytes;
  if (range.limitBytes === 0n || size <= range.limitBytes) return size;
  throw new VolumeError(
    "out-of-range",
    "Cannot choose a size because the source is larger than the capacity range: " +
      `${describe(range)} source=${sourceBytes}`,
  );
}

/**
 * The size to which an existing volume grows; its present size when that is enough, because nothing ever shrinks.
 *
 * @throws {VolumeError} invalid when nothing is required, out-of-range when the limit cannot be kept
 */
export function chooseGrownSize(range: SizeRange, currentBytes: bigint): bigint {
  assertSizeRange(range);
  if (range.requiredBytes === 0n && range.limitBytes === 0n) {
    throw new VolumeError("invalid", "Cannot expand the volume because no size is required");
  }
  const size = range.requiredBytes > currentBytes ? roundUp(range.requiredBytes) : currentBytes;
  if (range.limitBytes > 0n && size > range.limitBytes) {
    throw new VolumeError(
      "out-of-range",
      `Cannot expand the volume within its capacity range: ${describe(range)} current=${currentBytes}`,
    );
  }
  return size;
}

/** Whether an existing volume's size is within the range. */
export function sizeAnswers(range: SizeRange, sizeBytes: bigint): boolean {
  return sizeBytes >= range.requiredBytes && (range.limitBytes === 0n || sizeBytes <= range.limitBytes);
}

function roundUp(bytes: bigint): bigint {
  return (bytes + mebibyte - 1n) / mebibyte * mebibyte;
}

function describe(range: SizeRange): string {
  return `required=${range.requiredBytes} limit=${range.limitBytes}`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Formats bytes for people, with at most three digits: `1.5 GiB`. */
export function formatBytes(amount: bigint | number): string {
  let value = Number(amount);
  let unit = 0;
  // A value that would be rounded to 1024 is 1 of the next unit.
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${Number(value.toFixed(digits))} ${units[unit]}`;
}
