import { isReadOnlyDevice, partitionsOf, readSignatures } from "../../filesystem/contents.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import type { Processes } from "../../host/processes.ts";
import type { NodeDeps } from "../../node/deps.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DeviceNode, ProbeOptions, ProvenDevice } from "../../volume/ports/node_ports.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { formatBytes } from "../../volume/model/sizes.ts";
import { alignColumns } from "../table.ts";

/** The content of a device or a partition. */
export interface ContentReport {
  readonly device: string;
  readonly deviceNumber: string;
  readonly sizeBytes: number;
  /** The fields that blkid prints. */
  readonly signatures: Readonly<Record<string, string>>;
  /** For people: the file system, a partition table, nothing, or why it is unknown. */
  readonly content: string;
  /**
   * The command that mounts it without a write; null where there is nothing to mount, or where the device takes writes.
   */
  readonly mount: string | null;
}

/** The output of `rds-csi attach`. */
export interface DeviceReport extends ContentReport {
  readonly volume: string;
  readonly nqn: string;
  /** NGUID or UUID; "" where the target gives none. */
  readonly uniqueId: string;
  /** Whether the kernel refuses every write to it; null when the device is gone. */
  readonly readOnly: boolean | null;
  readonly partitions: readonly ContentReport[];
}

/** The adapters of a report. */
export interface ReportAdapters {
  readonly files: KernelFiles;
  readonly processes: Processes;
}

/** Reads the content of a proven device. For a part that cannot be read the report says why. */
export async function reportDevice(
  deps: NodeDeps,
  device: ProvenDevice,
  adapters: ReportAdapters,
  context: CallContext,
  options: ProbeOptions = {},
): Promise<DeviceReport> {
  const volume = parseExportNqn(device.nqn, deps.settings.nqnPrefix)?.volumeId ?? "";
  const readOnly = isReadOnlyDevice(adapters.files, device);
  const folder = readOnly ? `/mnt/${volume}` : undefined;
  const whole = await reportContent(device, folder, adapters, context);
  const partitions = await Promise.all(
    partitionsOf(adapters.files, device).map((partition, at) =>
      reportContent(partition, folder && `${folder}-${at + 1}`, adapters, context)
    ),
  );
  return {
    volume,
    nqn: device.nqn,
    uniqueId: device.uniqueId,
    readOnly: readOnly ?? null,
    ...whole,
    ...Object.keys(whole.signatures).length > 0
      ? {}
      : { content: await emptiness(deps, device, context, options) },
    partitions,
  };
}

async function reportContent(
  device: DeviceNode & { readonly sizeBytes: bigint },
  folder: string | undefined,
  { processes }: ReportAdapters,
  context: CallContext,
): Promise<ContentReport> {
  const { path, deviceNumber, sizeBytes } = device;
  const about = { device: path, deviceNumber, sizeBytes: Number(sizeBytes) };
  try {
    const signatures = await readSignatures(path, processes, context);
    const mount = folder === undefined ? null : mountCommand(path, signatures.TYPE, folder) ?? null;
    return { ...about, signatures, content: describeContent(signatures), mount };
  } catch (error) {
    return { ...about, signatures: {}, content: unreadable(error, context), mount: null };
  }
}

function describeContent({ TYPE, PTTYPE, LABEL, UUID }: Readonly<Record<string, string>>): string {
  const names = [LABEL === undefined ? "" : ` label=${LABEL}`, UUID === undefined ? "" : ` uuid=${UUID}`]
    .join("");
  if (TYPE !== undefined) return `${TYPE}${names}`;
  return PTTYPE === undefined ? "no signature" : `a ${PTTYPE} partition table`;
}

/** blkid reports a device that cannot be read as empty, so parts of it are read as well. */
async function emptiness(
  deps: NodeDeps,
  device: ProvenDevice,
  context: CallContext,
  options: ProbeOptions,
): Promise<string> {
  try {
    const { blank } = await deps.filesystems.probe(device, context, options);
    return blank ? "nothing: both ends are zero" : "no signature, but it is not empty";
  } catch (error) {
    return unreadable(error, context);
  }
}

function unreadable(error: unknown, { signal }: CallContext): string {
  signal.throwIfAborted();
  return `unknown: ${messageOf(error)}`;
}

/** Options for mounting each file system without a single write: no log is replayed. */
const options: Readonly<Record<string, string>> = {
  // A superblock that says so would panic the machine at the first error of a damaged file system.
  ext2: "ro,errors=remount-ro",
  ext3: "ro,noload,errors=remount-ro",
  ext4: "ro,noload,errors=remount-ro",
  xfs: "ro,norecovery,nouuid",
  btrfs: "ro,rescue=nologreplay",
};

/** The command that mounts a device read-only, by the type from blkid; undefined if there is none. */
export function mountCommand(device: string, type: string | undefined, folder: string): string | undefined {
  if (type === "crypto_LUKS") return `cryptsetup open --readonly ${device} NAME`;
  if (type === undefined || !Object.hasOwn(options, type)) return undefined;
  return `mkdir -p ${folder} && mount -t ${type} -o ${options[type]},nosuid,nodev ${device} ${folder}`;
}

/** The report as aligned lines for people. */
export function formatReport(report: DeviceReport): string[] {
  const rows: [name: string, text: string][] = [
    ["volume", report.volume],
    ["nqn", report.nqn],
    ["device", `${report.device} (${report.deviceNumber})`],
    ["size", formatSize(report)],
    ["id", report.uniqueId === "" ? "none from the target" : report.uniqueId],
    ["writes", writes(report)],
    ["content", report.content],
    ...report.partitions.map((each): [string, string] => [
      "partition",
      `${each.device} (${each.deviceNumber}) ${formatSize(each)}: ${each.content}`,
    ]),
    ...[report, ...report.partitions].flatMap(({ mount }): [string, string][] =>
      mount === null ? [] : [["mount it", mount]]
    ),
  ];
  return alignColumns(rows);
}

function formatSize({ sizeBytes }: ContentReport): string {
  return `${formatBytes(sizeBytes)} (${sizeBytes} bytes)`;
}

function writes({ readOnly }: DeviceReport): string {
  if (readOnly === null) return "the device is gone";
  return readOnly
    ? "refused by the kernel (BLKROSET)"
    : "accepted: a process that opens the device can change it";
}
