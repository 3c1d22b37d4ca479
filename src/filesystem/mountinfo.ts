import type { KernelFiles } from "../host/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";
import type { MountEntry } from "../volume/ports/node_ports.ts";

/**
 * Parses mountinfo (proc_pid_mountinfo(5)).
 *
 * @throws {VolumeError} unavailable when a line has another form: a table that is only partly understood does not prove
 *   that something is not mounted
 */
export function parseMountinfo(text: string): readonly MountEntry[] {
  return text.split("\n").filter((line) => line !== "").map(parseLine);
}

function parseLine(line: string): MountEntry {
  const fields = line.split(" ");
  const separator = fields.indexOf("-", 6);
  const [mountId, parentId, deviceNumber, root, mountPoint, mountOptions] = fields;
  const [filesystem, source, superOptions] = fields.slice(separator + 1);
  if (separator < 0 || superOptions === undefined || !/^[0-9]+:[0-9]+$/.test(deviceNumber!)) {
    throw new VolumeError(
      "unavailable",
      `Cannot read the mount table because a line is malformed: ${line}`,
    );
  }
  return {
    mountId: Number(mountId),
    parentId: Number(parentId),
    deviceNumber: deviceNumber!,
    root: unescape(root!),
    mountPoint: unescape(mountPoint!),
    mountOptions: mountOptions!.split(","),
    filesystem: filesystem!,
    source: unescape(source!),
    superOptions: superOptions.split(","),
  };
}

/** Space, tab, line break and backslash are written as three octal digits. */
function unescape(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

const mountinfoPath = "/proc/self/mountinfo";
const maxReadings = 8;

/**
 * The mount table of this process.
 *
 * A table that changes while it is read in pieces may lack an entry that was there all the time, so it is read until
 * two reads agree.
 *
 * @throws {VolumeError} unavailable when it cannot be read, or keeps changing
 */
export function readMountTable(files: KernelFiles): readonly MountEntry[] {
  let last = files.readText(mountinfoPath);
  for (let reading = 1; reading < maxReadings; reading++) {
    const text = files.readText(mountinfoPath);
    if (text !== undefined && text === last) return parseMountinfo(text);
    last = text;
  }
  throw new VolumeError(
    "unavailable",
    "Cannot read the mount table because it keeps changing: try again",
  );
}
