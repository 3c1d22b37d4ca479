import { systemClock } from "../host/clock.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { describeAddress, parseAddress, type TargetAddress } from "./address.ts";
import { readDiscoveryLog } from "./commands.ts";
import { type HostAdapters, openController, withinLimit } from "./controller.ts";
import type { Queue } from "./queue.ts";
import { textOf, viewOf, wireError } from "./wire.ts";

/** The discovery subsystem, which every target has under this NQN. */
const discoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";
const transferBytes = 64 * 1024;
const attempts = 5;

/**
 * Reads the complete discovery log of a target: every subsystem that the target shows to this host at this port. A log
 * that changed during the read is read again.
 *
 * @throws {VolumeError} invalid when the address is invalid
 * @throws {VolumeError} unavailable when the target cannot be reached, refuses, or its log keeps changing
 * @throws {VolumeError} deadline or cancelled when the call ends first
 */
export async function discover(
  target: TargetAddress,
  context: CallContext,
  adapters: HostAdapters = {},
): Promise<readonly DiscoveredSubsystem[]> {
  const where = parseAddress({ ...target, nqn: discoveryNqn });
  const parts = { clock: systemClock, ...adapters };
  return await withinLimit(where, context, parts, async (limited) => {
    const { admin, identity } = await openController(where, 0, limited, parts);
    await using _open = admin;
    const stepBytes = Math.min(transferBytes, identity.longestTransferBytes);
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const subsystems = await readOnce(admin, stepBytes, limited);
      if (subsystems !== undefined) return subsystems;
    }
    throw new VolumeError(
      "unavailable",
      "Cannot read the NVMe discovery log because it changes all the time: " +
        `${describeAddress(where)}; try again`,
    );
  });
}

/** Reads the log once; undefined when it changed during the read. */
async function readOnce(
  admin: Queue,
  stepBytes: number,
  context: CallContext,
): Promise<readonly DiscoveredSubsystem[] | undefined> {
  const before = parseLogHeader((await admin.run(readDiscoveryLog(0, recordBytes), context)).bytes);
  const log = new Uint8Array(before.records * recordBytes);
  for (let at = 0; at < log.length; at += stepBytes) {
    const command = readDiscoveryLog(recordBytes + at, Math.min(stepBytes, log.length - at));
    log.set((await admin.run(command, context)).bytes, at);
  }
  const after = parseLogHeader((await admin.run(readDiscoveryLog(0, recordBytes), context)).bytes);
  const same = before.generation === after.generation && before.records === after.records;
  return same ? parseRecords(log) : undefined;
}

/** A subsystem in a target's discovery log. */
interface DiscoveredSubsystem {
  readonly nqn: string;
  /** As the target writes it. */
  readonly address: string;
  /** 0 where the transport has no port, or the target gives none. */
  readonly port: number;
  /** "tcp", "rdma", "fc", "loop", or the number of another. */
  readonly transport: string;
}

/** The header of a discovery log. */
interface LogHeader {
  /** Changes with the log. */
  readonly generation: bigint;
  readonly records: number;
}

/** Length of the log's header, and of each record after it. */
export const recordBytes = 1024;

/** The maximum number of records, more than a router has disks. A larger log is refused. */
const maxRecords = 16_384n;

const transports: Readonly<Record<number, string>> = { 1: "rdma", 2: "fc", 3: "tcp", 254: "loop" };
const nvmSubsystem = 2;

/**
 * Parses the header of a discovery log.
 *
 * @throws {VolumeError} unavailable when it has another format, or too many records
 */
export function parseLogHeader(bytes: Uint8Array): LogHeader {
  const view = viewOf(bytes);
  const [records, format] = [view.getBigUint64(8, true), view.getUint16(16, true)];
  if (format !== 0) throw wireError("its discovery log has another format", `recfmt=${format}`);
  if (records > maxRecords) throw wireError("its discovery log is too long", `records=${records}`);
  return { generation: view.getBigUint64(0, true), records: Number(records) };
}

/** Parses the records of a complete log; those that refer to other discovery services are left out. */
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
