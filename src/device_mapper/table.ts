import type { MapTable } from "../volume/ports/device_maps.ts";

const sectorBytes = 512n;

/** The kernel adds its own features, such as `retain_attached_hw_handler`. */
const tableForm =
  /^0 (?<sectors>[1-9][0-9]*) multipath [0-9]+ (?<features>[a-z_ ]*?) ?0 1 1 round-robin 0 1 1 (?<path>[0-9]+:[0-9]+) 1$/;

const queueing = "queue_if_no_path";
const bioMode = "queue_mode bio";

/** The table of a map that lets I/O wait: Linux, admin-guide/device-mapper, and `multipath_ctr()` of dm-mpath.c. */
export function formatTable(sizeBytes: bigint, path: string): string {
  // The kernel's own multipath head, which may be below the map, is not request-based.
  const features = `3 ${queueing} ${bioMode}`;
  const [handler, groups, selector] = ["0", "1 1", "round-robin 0"];
  return `0 ${sizeBytes / sectorBytes} multipath ${features} ${handler} ${groups} ${selector} 1 1 ${path} 1`;
}

/** Whether `dmsetup table` shows the table that {@linkcode formatTable} made. */
export function isTable(said: string, sizeBytes: bigint, path: string): boolean {
  const found = tableForm.exec(said.trim())?.groups;
  return found?.["sectors"] === String(sizeBytes / sectorBytes) && found["path"] === path &&
    [queueing, bioMode].every((feature) => ` ${found["features"]} `.includes(` ${feature} `));
}

/**
 * Parses the output of `dmsetup table` and `dmsetup status`; undefined when the table is not one of {@linkcode
 * formatTable}'s.
 */
export function parseTable(table: string, status: string): MapTable | undefined {
  const { features = "", path } = tableForm.exec(table.trim())?.groups ?? {};
  if (path === undefined) return undefined;
  const state = new RegExp(`^0 [1-9][0-9]* multipath .* ${path} ([AF]) [0-9]+\\b`).exec(status.trim())?.[1];
  if (state === undefined) return undefined;
  return { queues: features.split(" ").includes(queueing), path, failed: state === "F" };
}
