import { VolumeError } from "../volume/errors.ts";

/**
 * The error for bytes that violate the specification: nothing else that the target sends is trusted either.
 *
 * @param found what was found, as `key=value`
 */
export function wireError(reason: string, found: string): VolumeError {
  return new VolumeError("unavailable", `Cannot understand the NVMe target because ${reason}: ${found}`);
}

/** A view of the same bytes that reads and writes numbers; NVMe's are little-endian. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A text field of fixed length: it ends at the first NUL, and trailing blanks do not count. */
export function textOf(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end === -1 ? bytes : bytes.subarray(0, end)).trimEnd();
}

/** Lower-case hex; "" when every byte is zero, by which NVMe means no value. */
export function hexOf(bytes: Uint8Array): string {
  if (bytes.every((byte) => byte === 0)) return "";
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
