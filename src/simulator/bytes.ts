const encoder = new TextEncoder();

/** How many bytes a text takes on the wire. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The longest start of a text that has at most so many bytes. */
export function clipBytes(text: string, most: number): string {
  const bytes = encoder.encode(text);
  if (bytes.length <= most) return text;
  return new TextDecoder().decode(bytes.subarray(0, most)).replace(/\uFFFD$/, "");
}
