import { limitSignal } from "../async/deadline.ts";
import { type DeviceOpening, holdingDevice } from "../host/held_device.ts";
import type { DevicePart, KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import type { ProvenDevice } from "../volume/ports/node_ports.ts";

/** How much of each end of a device is read: every signature that tools know is there. */
const endBytes = 1024 * 1024;

const readTimeoutMs = 30_000;

/** Reads a device, and keeps it open. */
export interface DeviceReading {
  readonly files: Pick<KernelFiles, "hold" | "readDirect">;
  readonly clock: Clock;
}

/** The offsets of the ends; only one when the device is no larger than one end. */
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
 * Whether every byte of both ends of the device is zero, read past all caches. If the first end is not zero, the other
 * one is not read: that is so for every volume in use.
 *
 * @throws {VolumeError} unavailable when a read fails or returns fewer bytes than requested
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

/**
 * Whether all bytes are zero. It compares words of four bytes: a function call for each of a million bytes would take
 * longer than the read.
 */
export function isZero(bytes: Uint8Array): boolean {
  const text = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  for (let at = 0; at < text.length; at++) if (text[at] !== 0) return false;
  return true;
}

/**
 * Reads parts of a device past all caches; offsets and lengths in bytes, multiples of 4096.
 *
 * @throws {VolumeError} unavailable when it fails, takes too long or returns fewer bytes than requested
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
  opening: DeviceOpening,
  context: CallContext,
): Promise<void> {
  await holdingDevice(opening, device, context, (path) => zeroEndsAt(path, device, processes, context));
}

async function zeroEndsAt(
  path: string,
  device: ProvenDevice,
  processes: Processes,
  context: CallContext,
): Promise<void> {
  for (const offset of endOffsets(device)) {
    const result = await processes.run("dd", {
      args: [
        "if=/dev/zero",
        `of=${path}`,
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
