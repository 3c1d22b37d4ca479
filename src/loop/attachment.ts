import { VolumeError } from "../volume/errors.ts";

/** What the loop connector remembers of one subsystem: written before the device is attached. */
export interface Attachment {
  /** The backing file, links resolved. */
  readonly backing: string;
  /** Name of the loop device, as `loop3`. */
  readonly device: string;
  /** The kernel's count of what the device was attached to; undefined until it is, and on kernels before 5.15. */
  readonly diskSequence: string | undefined;
}

/** The text of a state file. */
export function formatAttachment(attachment: Attachment): string {
  return JSON.stringify(attachment) + "\n";
}

/**
 * Reads a state file.
 *
 * @throws {VolumeError} precondition when it is damaged
 */
export function parseAttachment(text: string, path: string): Attachment {
  const { backing, device, diskSequence } = parseFields(text);
  const sound = typeof backing === "string" && backing.startsWith("/") &&
    typeof device === "string" && /^loop[0-9]+$/.test(device) &&
    (diskSequence === undefined || (typeof diskSequence === "string" && /^[0-9]+$/.test(diskSequence)));
  if (!sound) {
    throw new VolumeError("precondition", `Cannot use the state file as it is damaged: file=${path}`);
  }
  return { backing, device, diskSequence };
}

function parseFields(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
