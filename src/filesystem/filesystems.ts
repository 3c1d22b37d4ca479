import { repairAdvice } from "./repair_advice.ts";
import { holdingDevice } from "../host/held_device.ts";
import { complaint, type Processes } from "../host/processes.ts";
import type { ToolResult } from "../host/spawn.ts";
import type { ToolName } from "../host/tools.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import {
  contradictorySignatures,
  type DeviceProbe,
  type Filesystems,
  type FilesystemStats,
  type FormatOptions,
  type FoundSignature,
  type LogState,
  type ProbeOptions,
  type ProvenDevice,
} from "../volume/ports/node_ports.ts";
import type { FilesystemType } from "../volume/model/capabilities.ts";
import { samplesAreZero } from "./device_samples.ts";
import { type DeviceReading, endsAreZero, readParts, zeroEnds } from "./device_ends.ts";
import { wasMounted } from "./ever_mounted.ts";
import { fillsDevice, superblockBytes } from "./fills_device.ts";
import { readLogState } from "./log_state.ts";
import { mkfsExt4Arguments, mkfsXfsArguments, parseXfsVersion } from "./mkfs_command.ts";

/** `sb_inprogress`: 1 from mkfs.xfs's first write to its last (XFS Algorithms & Data Structures, "Superblocks"). */
const xfsInProgressAt = 126;

/** How long a trim may take: a router may take seconds for each of many extents. */
const trimMs = 600_000;

/** ext4 and xfs through their own tools. */
export class SystemFilesystems implements Filesystems {
  readonly #processes: Processes;
  readonly #reading: DeviceReading;
  #knownXfsVersion: string | undefined;

  constructor(processes: Processes, reading: DeviceReading) {
    this.#processes = processes;
    this.#reading = reading;
  }

  /** Runs both reads at once. Neither is enough alone: blkid reports a device that cannot be read as empty. */
  async probe(
    device: ProvenDevice,
    context: CallContext,
    { onlyEnds = false }: ProbeOptions = {},
  ): Promise<DeviceProbe> {
    const asked = findSignature(device, this.#processes, context);
    const [blank, signature] = await Promise.allSettled([this.#isBlank(device, onlyEnds, context), asked]);
    if (blank.status === "rejected") throw blank.reason;
    if (signature.status === "rejected") throw signature.reason;
    return { blank: blank.value, signature: signature.value };
  }

  async #isBlank(device: ProvenDevice, onlyEnds: boolean, context: CallContext): Promise<boolean> {
    if (!await endsAreZero(device, this.#reading, context)) return false;
    return onlyEnds || await samplesAreZero(device, this.#reading, context);
  }

  async isComplete(device: ProvenDevice, filesystem: FilesystemType, context: CallContext): Promise<boolean> {
    const start = [{ offset: 0n, length: superblockBytes }];
    const [superblock] = await readParts(device, start, this.#reading, context);
    if (filesystem === "xfs") return superblock![xfsInProgressAt] === 0;
    // Only a complete one is ever mounted. After a crash it is inconsistent, and holds data.
    if (wasMounted(superblock!)) return true;
    // `-n` opens it read-only. The full check is short, because only mkfs ever wrote to it.
    const result = await this.#processes.run("e2fsck", {
      args: ["-n", "-f", device.path],
      signal: context.signal,
      subject: device.path,
      timeoutMs: 600_000,
    });
    if (result.code === 0) return true;
    if ((result.code & ~4) === 0) return false;
    throw new VolumeError(
      "unavailable",
      `Cannot judge the file system: device=${device.path}: ${complaint(result)}`,
    );
  }

  async logState(
    device: ProvenDevice,
    filesystem: FilesystemType,
    context: CallContext,
  ): Promise<LogState> {
    return await readLogState(device, filesystem, this.#processes, this.#reading, context);
  }

  async eraseEnds(device: ProvenDevice, context: CallContext): Promise<void> {
    await zeroEnds(device, this.#processes, this.#reading, context);
  }

  async format(
    device: ProvenDevice,
    filesystem: FilesystemType,
    options: FormatOptions,
    context: CallContext,
  ): Promise<void> {
    const version = filesystem === "xfs" ? await this.#xfsVersion(context) : "";
    const argumentsFor = (path: string) =>
      filesystem === "ext4" ? mkfsExt4Arguments(path, options) : mkfsXfsArguments(path, options, version);
    await this.#finish(`mkfs.${filesystem}`, argumentsFor, device, context);
  }

  async check(device: ProvenDevice, filesystem: FilesystemType, context: CallContext): Promise<void> {
    if (filesystem === "xfs") return; // Mounting replays the log; a repair is a person's decision.
    const result = await this.#run("e2fsck", (path) => ["-p", path], device, context);
    if (result.code === 0 || result.code === 1) return;
    if (result.code === 8 && / is (?:in use|mounted)\.$/m.test(result.stdout + result.stderr)) {
      throw new VolumeError(
        "in-use",
        `Cannot check the file system because its device is in use: device=${device.path}: ` +
          `${complaint(result)}`,
      );
    }
    // Bit 4: errors were left. Without it the check did not end (in use, killed, no superblock, …), which may pass.
    const needsRepair = (result.code & 4) !== 0;
    throw new VolumeError(
      needsRepair ? "precondition" : "unavailable",
      "Cannot use the file system because " +
        `${needsRepair ? "it needs repair by hand" : "its check did not end"}: device=${device.path}: ` +
        `${complaint(result)}; ${needsRepair ? "" : "if it stays so, "}` +
        repairAdvice,
    );
  }

  async grow(
    device: ProvenDevice,
    filesystem: FilesystemType,
    mountPoint: string,
    context: CallContext,
  ): Promise<void> {
    // The tools would report the same. But most stages find nothing to grow, and each tool takes time.
    if (await this.#fills(device, filesystem, context)) return;
    if (filesystem === "xfs") {
      return await this.#finish("xfs_growfs", () => ["-d", mountPoint], device, context);
    }
    const result = await this.#run("resize2fs", (path) => [path], device, context);
    if (result.code === 0) return;
    const why = refusedGrowth(result.stderr);
    throw new VolumeError(
      why === undefined ? "unavailable" : "precondition",
      `Cannot grow the file system${why ?? ""}: device=${device.path}: ${complaint(result)}`,
    );
  }

  /** Whether the file system fills its device; false when it cannot be read: then the tool reports why. */
  async #fills(device: ProvenDevice, filesystem: FilesystemType, context: CallContext): Promise<boolean> {
    const start = [{ offset: 0n, length: superblockBytes }];
    try {
      const [superblock] = await readParts(device, start, this.#reading, context);
      return fillsDevice(superblock!, filesystem, device.sizeBytes);
    } catch (error) {
      context.signal.throwIfAborted();
      if (VolumeError.is(error)) return false;
      throw error;
    }
  }

  async stats(mountPoint: string, context: CallContext): Promise<FilesystemStats> {
    const result = await this.#processes.run("stat", {
      args: statsArguments(mountPoint),
      signal: context.signal,
      // A different subject than the path: this may hang, and after an unmount the path must still be readable.
      subject: `the file system at ${mountPoint}`,
      timeoutMs: 10_000,
    });
    if (result.code === 0) return parseStats(result.stdout);
    throw new VolumeError("unavailable", `Cannot ask the file system at ${mountPoint}: ${complaint(result)}`);
  }

  async trim(device: ProvenDevice, mountPoint: string, context: CallContext): Promise<bigint | undefined> {
    const result = await this.#processes.run("fstrim", {
      args: ["--verbose", "--", mountPoint],
      signal: context.signal,
      subject: device.path,
      timeoutMs: trimMs,
    });
    if (result.code === 0) return parseTrimmed(result.stdout);
    // fstrim's message when FITRIM ends with EOPNOTSUPP (util-linux, sys-utils/fstrim.c).
    if (result.stderr.includes("the discard operation is not supported")) return undefined;
    throw new VolumeError(
      "unavailable",
      `Cannot trim the file system: device=${device.path} path=${mountPoint}: ${complaint(result)}`,
    );
  }

  /** Runs a tool that writes to the device to its end, even when the call ends first. */
  async #run(
    tool: ToolName,
    argumentsFor: (path: string) => readonly string[],
    device: ProvenDevice,
    context: CallContext,
  ): Promise<ToolResult> {
    const options = { signal: context.signal, subject: device.path, mustFinish: true };
    const run = (path: string) => this.#processes.run(tool, { args: argumentsFor(path), ...options });
    return await holdingDevice(this.#reading, device, context, run);
  }

  /** The same, where any other end than success is unavailable. */
  async #finish(
    tool: ToolName,
    argumentsFor: (path: string) => readonly string[],
    device: ProvenDevice,
    context: CallContext,
  ): Promise<void> {
    const result = await this.#run(tool, argumentsFor, device, context);
    if (result.code === 0) return;
    throw new VolumeError(
      "unavailable",
      `Cannot run ${tool} to its end: device=${device.path}: ${complaint(result)}`,
    );
  }

  /** Read once: the tools in the container stay the same while this process runs. */
  async #xfsVersion(context: CallContext): Promise<string> {
    this.#knownXfsVersion ??= await this.#askXfsVersion(context);
    return this.#knownXfsVersion;
  }

  async #askXfsVersion(context: CallContext): Promise<string> {
    const options = { args: ["-V"], signal: context.signal, subject: "mkfs.xfs" };
    const result = await this.#processes.run("mkfs.xfs", options);
    return parseXfsVersion(result.stdout + result.stderr);
  }
}

/** The arguments for stat(1) to print what {@linkcode parseStats} parses. */
function statsArguments(mountPoint: string): readonly string[] {
  return ["-f", "-c", "%S %b %f %a %c %d", "--", mountPoint];
}

/**
 * Parses block size, blocks, free blocks, blocks free to others than root, inodes and free inodes.
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

/**
 * Parses how many bytes fstrim reported to the device: `/mnt: 1 GiB (1073741824 bytes) trimmed`.
 *
 * @throws {VolumeError} unavailable when the output has another form
 */
function parseTrimmed(output: string): bigint {
  const match = /\(([0-9]+) bytes\) trimmed/.exec(output);
  if (match !== null) return BigInt(match[1]!);
  throw new VolumeError("unavailable", `Cannot read what fstrim says: output=${output.trim()}`);
}

/** Why resize2fs would refuse the same growth again; undefined where it may not. */
function refusedGrowth(stderr: string): string | undefined {
  // The kernel gives both reasons one error (`ext4_resize_begin` in fs/ext4/resize.c).
  if (/Permission denied to resize/.test(stderr)) {
    return " because it holds errors that a check has to repair first, or this process lacks CAP_SYS_RESOURCE";
  }
  // With blocks of 1 KiB from about 1 TiB on.
  return /too many block group descriptors/.test(stderr)
    ? " because its blocks are too small for that size"
    : undefined;
}

/** The file systems that the driver makes. */
const ownFilesystems: readonly string[] = ["ext4", "xfs"];

/**
 * Runs blkid on the device, without its cache. It looks for members of arrays first, also by what a user of the file system can
 * write into its last block: so it looks once more for the driver's own file systems alone.
 */
async function findSignature(
  device: ProvenDevice,
  processes: Processes,
  context: CallContext,
): Promise<DeviceProbe["signature"]> {
  const signature = await runBlkid(device, processes, context, []);
  if (signature.state !== "found" || ownFilesystems.includes(signature.type)) return signature;
  const alone = await runBlkid(device, processes, context, ["-n", ownFilesystems.join(",")]);
  if (alone.state !== "found" || !ownFilesystems.includes(alone.type)) return signature;
  const { state: _state, ...filesystem } = alone;
  return { ...signature, filesystem };
}

/**
 * Exit codes of `blkid -p` (blkid(8)): 0 found, 2 nothing found *or* not readable, 8 several contradictory signatures.
 * So another read has to show that the device can be read.
 */
async function runBlkid(
  device: ProvenDevice,
  processes: Processes,
  context: CallContext,
  filter: readonly string[],
): Promise<DeviceProbe["signature"]> {
  const result = await processes.run("blkid", {
    args: ["-p", ...filter, "-o", "export", "--", device.path],
    signal: context.signal,
    subject: device.path,
    timeoutMs: 30_000,
  });
  switch (result.code) {
    case 0:
      return { state: "found", ...readSignature(result.stdout) };
    case 2:
      return { state: "none" };
    case 8:
      return { state: "found", type: contradictorySignatures };
    default:
      return { state: "unknown", reason: `blkid ${complaint(result)}` };
  }
}

function readSignature(output: string): FoundSignature {
  const values = new Map(
    output.split("\n").map((line) => {
      const at = line.indexOf("=");
      return [line.slice(0, at), line.slice(at + 1)] as const;
    }),
  );
  const [type, uuid, label] = ["TYPE", "UUID", "LABEL"].map((name) => values.get(name));
  if (type !== undefined) {
    return { type, ...(uuid === undefined ? {} : { uuid }), ...(label === undefined ? {} : { label }) };
  }
  const table = values.get("PTTYPE");
  return { type: table === undefined ? "a signature without a type" : `a ${table} partition table` };
}
