import type { MapTable } from "../volume/ports/device_maps.ts";

const sectorBytes = 512n;

/** The table of a map that lets I/O wait: Linux, admin-guide/device-mapper, and `multipath_ctr()` of dm-mpath.c. */
export function formatTable(sizeBytes: bigint, path: string): string {
  // The kernel's own multipath head is not request-based.
  const features = "3 queue_if_no_path queue_mode bio";
  const [handler, groups, selector] = ["0", "1 1", "round-robin 0"];
  return `0 ${sizeBytes / sectorBytes} multipath ${features} ${handler} ${groups} ${selector} 1 1 ${path} 1`;
}

const tableForm =
  /^0 [1-9][0-9]* multipath [0-9]+ (?<features>.*?) ?0 1 1 round-robin 0 1 1 (?<path>[0-9]+:[0-9]+) 1$/;

/**
 * Reads what `dmsetup table` and `dmsetup status` say of a map; undefined when it is none of {@linkcode formatTable}'s.
 */
export function parseTable(table: string, status: string): MapTable | undefined {
  const { features = "", path } = tableForm.exec(table.trim())?.groups ?? {};
  if (path === undefined) return undefined;
  const state = new RegExp(`^0 [1-9][0-9]* multipath .* ${path} ([AF]) [0-9]+\\b`).exec(status.trim())?.[1];
  if (state === undefined) return undefined;
  return { queues: features.split(" ").includes("queue_if_no_path"), path, failed: state === "F" };
}
