import { createHash } from "node:crypto";

const chunkBytes = 1 << 20;

/**
 * Writes `bytes` of pseudo-random data to a file or a block device, syncs it, and returns its SHA-256 in hex. A device
 * is never created: writing to a missing one would create a plain file and look like success.
 *
 * @param seed another one gives other data
 */
export async function writePattern(path: string, bytes: number, seed = 0): Promise<string> {
  const info = await Deno.stat(path).catch(() => undefined);
  const file = await Deno.open(path, {
    write: true,
    create: info === undefined,
    truncate: info?.isFile ?? false,
  });
  const hash = createHash("sha256");
  try {
    for (let offset = 0; offset < bytes; offset += chunkBytes) {
      const chunk = patternChunk(offset, seed);
      hash.update(chunk);
      for (let written = 0; written < chunk.length;) written += await file.write(chunk.subarray(written));
    }
    await file.sync();
  } finally {
    file.close();
  }
  return hash.digest("hex");
}

/** The SHA-256 of the first `bytes` of a file or a block device, in hex. */
export async function checksumOf(path: string, bytes: number): Promise<string> {
  const file = await Deno.open(path, { read: true });
  const hash = createHash("sha256");
  const buffer = new Uint8Array(chunkBytes);
  try {
    for (let left = bytes; left > 0;) {
      const count = await file.read(buffer.subarray(0, Math.min(left, chunkBytes)));
      if (count === null) throw new Error(`${path} ends ${left} bytes early`);
      hash.update(buffer.subarray(0, count));
      left -= count;
    }
  } finally {
    file.close();
  }
  return hash.digest("hex");
}

/** A mebibyte that differs from every other one, so that a shifted or doubled block changes the checksum. */
function patternChunk(offset: number, seed: number): Uint8Array {
  const text = new Uint32Array(chunkBytes / 4);
  let state = (offset / chunkBytes + 1 + seed * 7919) >>> 0;
  for (let i = 0; i < text.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    text[i] = state;
  }
  return new Uint8Array(text.buffer);
}
