import { complaint, type Processes } from "../host/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, ProvenDevice } from "../volume/ports.ts";

/** How much of either end of a device is looked at: every signature that tools know of lies there. */
const endBytes = 1024 * 1024;

const readTimeoutMs = 30_000;

/** Where the ends begin; one and the same for a device that is as small as that. */
function endOffsets(device: ProvenDevice): readonly bigint[] {
  const tail = device.sizeBytes - BigInt(endBytes);
  if (tail < 0n) {
    throw new VolumeError(
      "precondition",
      `Cannot judge the device as it is smaller than its ends: device=${device.path} size=${device.sizeBytes}`,
    );
  }
  return [...new Set([0n, tail])];
}

/**
 * Whether every byte of both ends of the device is zero, read past all caches.
 *
 * @throws {VolumeError} unavailable when a read fails or gives less than was asked for
 */
export async function endsAreZero(
  device: ProvenDevice,
  processes: Processes,
  context: CallContext,
): Promise<boolean> {
  let zero = true;
  for (const offset of endOffsets(device)) {
    const bytes = await readAt(device, offset, endBytes, processes, context);
    zero &&= bytes.every((byte) => byte === 0);
  }
  return zero;
}

/**
 * Reads part of a device past all caches; offset and length in bytes, multiples of its block size.
 *
 * @throws {VolumeError} unavailable when it fails or gives less than was asked for
 */
export async function readAt(
  device: ProvenDevice,
  offset: bigint,
  length: number,
  processes: Processes,
  context: CallContext,
): Promise<Uint8Array> {
  const result = await processes.run("dd", {
    args: [
      `if=${device.path}`,
      `bs=${length}`,
      "count=1",
      `skip=${offset}`,
      "iflag=direct,fullblock,skip_bytes",
      "status=none",
    ],
    signal: context.signal,
    subject: device.path,
    timeoutMs: readTimeoutMs,
  });
  if (result.code === 0 && result.bytes.length === length) return result.bytes;
  throw new VolumeError(
    "unavailable",
    `Cannot read the device: device=${device.path} offset=${offset} bytes=${result.bytes.length} ` +
      `wanted=${length}: ${complaint(result)}`,
  );
}

/**
 * Zeroes both ends of the device. Not killed when the context ends.
 *
 * @throws {VolumeError} unavailable when a write fails
 */
export async function zeroEnds(
  device: ProvenDevice,
  processes: Processes,
  context: CallContext,
): Promise<void> {
  for (const offset of endOffsets(device)) {
    const result = await processes.run("dd", {
      args: [
        "if=/dev/zero",
        `of=${device.path}`,
        `bs=${endBytes}`,
        "count=1",
        `seek=${offset}`,
        "oflag=direct,seek_bytes",
        "conv=nocreat,notrunc,fsync",
        "status=none",
      ],
      signal: context.signal,
      subject: device.path,
      mustFinish: true,
    });
    if (result.code === 0) continue;
    throw new VolumeError(
      "unavailable",
      `Cannot write to the device: device=${device.path}: ${complaint(result)}`,
    );
  }
}
