import type { DevicePart } from "../host/kernel_files.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { ProvenDevice } from "../volume/ports/node_ports.ts";
import { type DeviceReading, isZero, readParts } from "./device_ends.ts";

/** How much is read at each place, in bytes. */
const sampleBytes = 64 * 1024;
/** The first place that the ends leave out and that ext4 or Btrfs may use, as a power of two. */
const firstPower = 21n;
/** xfs divides a device into 4 parts, or into more where it is large, each with a superblock of its own. */
const evenParts = 16n;
/** All reads begin at a multiple of it. */
const blockBytes = 4096n;

/**
 * Where file systems keep copies of their superblocks: ext4 after its first group, at 8, 32 or 128 MiB by the size of
 * its blocks; Btrfs at 64 MiB and 256 GiB; xfs at even parts of the device that it was made on, so that one which has grown may have none of them at these
 * places.
 */
export function samplePlaces(sizeBytes: bigint): readonly DevicePart[] {
  const offsets = new Set<bigint>();
  for (let power = firstPower; 1n << power < sizeBytes; power++) offsets.add(1n << power);
  for (let part = 1n; part < evenParts; part++) {
    offsets.add(sizeBytes * part / evenParts / blockBytes * blockBytes);
  }
  const length = BigInt(sampleBytes);
  return [...offsets].filter((offset) => offset + length <= sizeBytes).map((offset) => ({
    offset,
    length: sampleBytes,
  }));
}

/**
 * Whether every byte is zero where file systems keep copies of their superblocks, read past all caches. A file system
 * whose ends were lost can be saved from such a copy, unless another one is made over it.
 *
 * @throws {VolumeError} unavailable when a read fails or returns fewer bytes than requested
 */
export async function samplesAreZero(
  device: ProvenDevice,
  reading: DeviceReading,
  context: CallContext,
): Promise<boolean> {
  const samples = await readParts(device, samplePlaces(device.sizeBytes), reading, context);
  return samples.every(isZero);
}
