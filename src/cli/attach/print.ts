import { formatBytes } from "../../doctor/router/storage.ts";
import type { ContentReport, DeviceReport } from "./device_report.ts";

/** The report as aligned lines for people. */
export function formatReport(report: DeviceReport): string[] {
  const rows: [name: string, text: string][] = [
    ["volume", report.volume],
    ["nqn", report.nqn],
    ["device", `${report.device} (${report.deviceNumber})`],
    ["size", formatSize(report)],
    ["id", report.uniqueId === "" ? "the target gives none" : report.uniqueId],
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
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`);
}

function formatSize({ sizeBytes }: ContentReport): string {
  return `${formatBytes(BigInt(sizeBytes))} (${sizeBytes} bytes)`;
}

function writes({ readOnly }: DeviceReport): string {
  if (readOnly === null) return "the device is gone";
  return readOnly ? "refused by the kernel (BLKROSET)" : "taken: whoever opens the device can change it";
}
