const encoder = new TextEncoder();

/** A view of the same bytes that reads and writes numbers. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Writes text into a field of fixed length, padded with blanks or, without `pad`, with NULs. */
export function putText(bytes: Uint8Array, at: number, length: number, text: string, pad = "\0"): void {
  bytes.set(encoder.encode(text.padEnd(length, pad)).subarray(0, length), at);
}

/** The text of a field up to its first NUL; undefined when it has none, or is no UTF-8. */
export function getText(field: Uint8Array): string | undefined {
  const end = field.indexOf(0);
  if (end === -1) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(field.subarray(0, end));
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
