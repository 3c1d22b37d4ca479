import { systemClock } from "../host/clock.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/ports.ts";
import { describeAddress, parseAddress, type TargetAddress } from "./address.ts";
import { readDiscoveryLog } from "./commands.ts";
import { type HostSeams, openController, withinLimit } from "./controller.ts";
import { type DiscoveredSubsystem, parseLogHeader, parseRecords, recordBytes } from "./discovery_log.ts";
import type { Queue } from "./queue.ts";

/** The subsystem that tells of the others, at every target. */
const discoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";
const transferBytes = 64 * 1024;
const attempts = 5;

/**
 * Reads the discovery log of a target, whole: every subsystem that the target shows to this host at this port. A log
 * that changed while it was read is read again.
 *
 * @throws {VolumeError} invalid when the address makes no sense
 * @throws {VolumeError} unavailable when the target cannot be reached, refuses, or its log never holds still
 * @throws {VolumeError} deadline or cancelled when the call ends first
 */
export async function discover(
  target: TargetAddress,
  context: CallContext,
  seams: HostSeams = {},
): Promise<readonly DiscoveredSubsystem[]> {
  const where = parseAddress({ ...target, nqn: discoveryNqn });
  const parts = { clock: systemClock, ...seams };
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
      `Cannot read the NVMe discovery log as it changes all the time: ${describeAddress(where)}; try again`,
    );
  });
}

/** Reads the log once; undefined when it changed meanwhile. */
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
