import { complaint, type Processes } from "../host/processes.ts";
import type { ToolResult } from "../host/spawn.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { FilesystemType } from "../volume/model/capabilities.ts";
import type { LogState, ProvenDevice } from "../volume/ports/node_ports.ts";
import { type DeviceReading, readParts } from "./device_ends.ts";

/** Whole blocks of any device, enough for ext4's superblock. */
const readBytes = 4096;

/** The offset of ext4's superblock, and its fields (Documentation/filesystems/ext4/super.rst). */
const superblockAt = 1024;
const magicAt = superblockAt + 0x38;
const magic = 0xef53;
const incompatibleFeaturesAt = superblockAt + 0x60;
/** `INCOMPAT_RECOVER`: set while it is mounted for writing, cleared by an unmount or a replay. */
const needsRecovery = 0x4;

/**
 * Whether the log of an unmounted file system has to be replayed. Changes nothing.
 *
 * @throws {VolumeError} unavailable when the device cannot be read, deadline when that takes too long
 */
export async function readLogState(
  device: ProvenDevice,
  filesystem: FilesystemType,
  processes: Processes,
  reading: DeviceReading,
  context: CallContext,
): Promise<LogState> {
  if (filesystem === "ext4") {
    const [start] = await readParts(device, [{ offset: 0n, length: readBytes }], reading, context);
    return parseExt4LogState(start!);
  }
  const result = await processes.run("xfs_logprint", {
    args: ["-t", device.path],
    signal: context.signal,
    subject: device.path,
  });
  return parseXfsLogState(result);
}

/** Parses the first bytes of a device with ext4. */
export function parseExt4LogState(start: Uint8Array): LogState {
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  if (view.getUint16(magicAt, true) !== magic) return unknown("there is no superblock of ext4");
  return { state: view.getUint32(incompatibleFeaturesAt, true) & needsRecovery ? "dirty" : "clean" };
}

/** Only the beginning: the rest of the output comes from the log, where a workload's bytes may look like anything. */
const xfsLogForm =
  /^xfs_logprint:\n +data device: \S+\n +log device: [^\n]+\n\n +log tail: [0-9]+ head: [0-9]+ state: <(CLEAN|DIRTY)>\n/;

/** Parses the output of `xfs_logprint -t`. With any complaint the state is unknown. */
export function parseXfsLogState(result: ToolResult): LogState {
  if (result.code !== 0 || result.stderr.trim() !== "") return unknown(`xfs_logprint ${complaint(result)}`);
  const match = xfsLogForm.exec(result.stdout);
  if (match === null) return unknown("the output of xfs_logprint is malformed");
  return { state: match[1] === "CLEAN" ? "clean" : "dirty" };
}

function unknown(reason: string): LogState {
  return { state: "unknown", reason };
}
