import { VolumeError } from "../volume/errors.ts";
import type { FilesystemStats } from "../volume/ports/ports.ts";

/** The arguments of stat(1) that make it print what {@linkcode parseStats} reads. */
export function statsArguments(mountPoint: string): readonly string[] {
  return ["-f", "-c", "%S %b %f %a %c %d", "--", mountPoint];
}

/**
 * Reads block size, blocks, free blocks, blocks free to others than root, inodes and free inodes.
 *
 * @throws {VolumeError} unavailable when the output has another form
 */
export function parseStats(output: string): FilesystemStats {
  const match = /^([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+)\n$/.exec(output);
  if (match === null) {
    throw new VolumeError("unavailable", `Cannot read the file system's statistics: output=${output.trim()}`);
  }
  const [block, blocks, free, available, inodes, freeInodes] = match.slice(1).map(BigInt) as Six;
  return {
    totalBytes: blocks * block,
    availableBytes: available * block,
    usedBytes: (blocks - free) * block,
    totalInodes: inodes,
    freeInodes,
    usedInodes: inodes - freeInodes,
  };
}

type Six = [bigint, bigint, bigint, bigint, bigint, bigint];
