import { limitSignal } from "../async/deadline.ts";
import type { DevicePart, KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import type { ProvenDevice } from "../volume/ports/node_ports.ts";

/** How much of either end of a device is looked at: every signature that tools know of lies there. */
const endBytes = 1024 * 1024;

const readTimeoutMs = 30_000;

/** What reads a device. */
export interface DeviceReading {
  readonly files: Pick<KernelFiles, "readDirect">;
  readonly clock: Clock;
}

/** Where the ends begin; one and the same for a device that is as small as that. */
function endOffsets(device: ProvenDevice): readonly bigint[] {
  const tail = device.sizeBytes - BigInt(endBytes);
  if (tail < 0n) {
    throw new VolumeError(
      "precondition",
      `Cannot judge the device because it is smaller than its ends: device=${device.path} size=${device.sizeBytes}`,
    );
  }
  return [...new Set([0n, tail])];
}

/**
 * Whether every byte of both ends of the device is zero, read past all caches. Where the first end shows that it is not,
 * the other one is not read: that is so of every volume that is in use.
 *
 * @throws {VolumeError} unavailable when a read fails or gives less than was asked for
 */
export async function endsAreZero(
  device: ProvenDevice,
  reading: DeviceReading,
  context: CallContext,
): Promise<boolean> {
  for (const offset of endOffsets(device)) {
    const [end] = await readParts(device, [{ offset, length: endBytes }], reading, context);
    if (!isZero(end!)) return false;
  }
  return true;
}

/** By words of four bytes: a million calls of a function would take longer than the reading. */
function isZero(bytes: Uint8Array): boolean {
  const text = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  for (let at = 0; at < text.length; at++) if (text[at] !== 0) return false;
  return true;
}

/**
 * Reads parts of a device past all caches; offsets and lengths in bytes, multiples of 4096.
 *
 * @throws {VolumeError} unavailable when it fails, takes too long or gives less than was asked for
 */
export async function readParts(
  device: ProvenDevice,
  parts: readonly DevicePart[],
  { files, clock }: DeviceReading,
  context: CallContext,
): Promise<readonly Uint8Array[]> {
  using limited = limitSignal(clock, context.signal, readTimeoutMs);
  try {
    const read = await files.readDirect(device.path, parts, limited.signal);
    const wrong = parts.findIndex(({ length }, at) => read[at]?.length !== length);
    if (wrong < 0) return read;
    throw new VolumeError(
      "unavailable",
      `Cannot read the device: device=${device.path} offset=${parts[wrong]!.offset} ` +
        `bytes=${read[wrong]?.length ?? 0} wanted=${parts[wrong]!.length}`,
    );
  } catch (error) {
    context.signal.throwIfAborted();
    throw error;
  }
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
