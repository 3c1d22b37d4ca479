import { textOf, viewOf, wireError } from "./wire.ts";

/** A subsystem that a target can be asked for. */
export interface DiscoveredSubsystem {
  readonly nqn: string;
  /** As the target gives it. */
  readonly address: string;
  /** 0 where the transport has none, or the target gives none. */
  readonly port: number;
  /** "tcp", "rdma", "fc", "loop", or the number of another. */
  readonly transport: string;
}

/** What a discovery log begins with. */
export interface LogHeader {
  /** Changes with the log. */
  readonly generation: bigint;
  readonly records: number;
}

/** Length of the log's header, and of each record behind it. */
export const recordBytes = 1024;

/** More records than a router has disks: a log that has more is not read. */
const mostRecords = 16_384n;

const transports: Readonly<Record<number, string>> = { 1: "rdma", 2: "fc", 3: "tcp", 254: "loop" };
const nvmSubsystem = 2;

/**
 * Reads the header of a discovery log.
 *
 * @throws {VolumeError} unavailable when it has another format, or more records than can be
 */
export function parseLogHeader(bytes: Uint8Array): LogHeader {
  const view = viewOf(bytes);
  const [records, format] = [view.getBigUint64(8, true), view.getUint16(16, true)];
  if (format !== 0) throw wireError("its discovery log has another format", `recfmt=${format}`);
  if (records > mostRecords) throw wireError("its discovery log is too long", `records=${records}`);
  return { generation: view.getBigUint64(0, true), records: Number(records) };
}

/** Reads the records of a log, whole; those that lead to other discovery services are left out. */
export function parseRecords(bytes: Uint8Array): readonly DiscoveredSubsystem[] {
  const found: DiscoveredSubsystem[] = [];
  for (let at = 0; at + recordBytes <= bytes.length; at += recordBytes) {
    const record = bytes.subarray(at, at + recordBytes);
    if (record[2] !== nvmSubsystem) continue;
    const port = textOf(record.subarray(32, 64)).trim();
    found.push({
      nqn: textOf(record.subarray(256, 512)),
      address: textOf(record.subarray(512, 768)),
      port: /^[0-9]{1,5}$/.test(port) ? Number(port) : 0,
      transport: transports[record[0] ?? 0] ?? String(record[0]),
    });
  }
  return found;
}
