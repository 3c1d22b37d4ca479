import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { contradictorySignatures, type DeviceNode } from "../volume/ports/node_ports.ts";

/** A partition of a device, as the kernel shows it. */
export interface Partition extends DeviceNode {
  readonly sizeBytes: bigint;
}

const sectorBytes = 512n;

/** Whether the kernel refuses writes to the device (BLKROGET); undefined when it is gone. */
export function isReadOnlyDevice(
  files: KernelFiles,
  { deviceNumber }: Pick<DeviceNode, "deviceNumber">,
): boolean | undefined {
  const flag = files.readText(`/sys/dev/block/${deviceNumber}/ro`)?.trim();
  return flag === undefined ? undefined : flag !== "0";
}

/** The partitions that the kernel has found on a device, in the order of their numbers. */
export function partitionsOf(
  files: KernelFiles,
  { deviceNumber }: Pick<DeviceNode, "deviceNumber">,
): readonly Partition[] {
  const folder = `/sys/dev/block/${deviceNumber}`;
  // A partition's name ends with its number; the folder has thirty attributes besides.
  const names = (files.list(folder) ?? []).filter((name) => /[0-9]$/.test(name));
  return names.flatMap((name) => {
    const read = (attribute: string) => files.readText(`${folder}/${name}/${attribute}`)?.trim();
    const [index, number, sectors] = [read("partition"), read("dev"), read("size")];
    if (index === undefined || number === undefined || sectors === undefined) return [];
    const partition = {
      path: `/dev/${name}`,
      deviceNumber: number,
      sizeBytes: BigInt(sectors) * sectorBytes,
    };
    return [{ index: Number(index), partition }];
  }).toSorted((a, b) => a.index - b.index).map(({ partition }) => partition);
}

/**
 * All fields that blkid prints for a device (`TYPE`, `UUID`, `LABEL`, `PTTYPE`, …); none when it finds nothing, or
 * cannot read the device. It opens the device only for reading.
 *
 * @throws {VolumeError} unavailable when it fails
 */
export async function readSignatures(
  path: string,
  processes: Processes,
  context: CallContext,
): Promise<Readonly<Record<string, string>>> {
  const result = await processes.run("blkid", {
    args: ["-p", "-o", "export", "--", path],
    signal: context.signal,
    subject: path,
    timeoutMs: 30_000,
  });
  if (result.code === 2) return {};
  if (result.code === 8) return { TYPE: contradictorySignatures };
  if (result.code !== 0) {
    throw new VolumeError("unavailable", `Cannot read the signatures: device=${path}: ${complaint(result)}`);
  }
  const fields = result.stdout.split("\n").flatMap((line) => {
    const at = line.indexOf("=");
    // blkid escapes some characters of a label for a shell.
    return at <= 0 ? [] : [[line.slice(0, at), line.slice(at + 1).replaceAll(/\\(.)/g, "$1")] as const];
  });
  return Object.fromEntries(fields.filter(([name]) => name !== "DEVNAME"));
}
