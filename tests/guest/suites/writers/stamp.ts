// Blocks that tell who wrote them, and whether they are whole. The layout, in bytes, little-endian: mark 0-7, writer 8-15,
// sequence 16-23, time 24-31, index 32-35, CRC-32 of everything else 36-39; the rest differs with every sequence.

/** What a block holds, in bytes. */
export const blockBytes = 4096;

const mark = "RDSSTAMP";
const crcAt = 36;
const fillAt = 40;

/** What is read from a block. */
export interface Stamp {
  readonly writer: string;
  /** From 1 on; each write of a writer has the next one. */
  readonly sequence: number;
  /** When it was written, in milliseconds, by the writer's clock. */
  readonly timeMs: number;
  /** Which block of its file it is. */
  readonly index: number;
  /** Whether the block is whole: nothing in it is of another write. */
  readonly isWhole: boolean;
}

/** Fills a block. */
export function writeStamp(block: Uint8Array, stamp: Omit<Stamp, "isWhole">): void {
  const view = new DataView(block.buffer, block.byteOffset, blockBytes);
  const text = new TextEncoder();
  text.encodeInto(mark, block);
  text.encodeInto(stamp.writer.padEnd(8).slice(0, 8), block.subarray(8));
  view.setBigUint64(16, BigInt(stamp.sequence), true);
  view.setFloat64(24, stamp.timeMs, true);
  view.setUint32(32, stamp.index, true);
  let state = (stamp.sequence ^ stamp.index << 20) >>> 0;
  for (let at = fillAt; at < blockBytes; at += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    view.setUint32(at, state, true);
  }
  view.setUint32(crcAt, crcOf(block), true);
}

/** Reads a block; undefined where nobody has stamped it. */
export function readStamp(block: Uint8Array): Stamp | undefined {
  for (let at = 0; at < mark.length; at++) if (block[at] !== mark.charCodeAt(at)) return undefined;
  const view = new DataView(block.buffer, block.byteOffset, blockBytes);
  return {
    writer: new TextDecoder().decode(block.subarray(8, 16)).trimEnd(),
    sequence: Number(view.getBigUint64(16, true)),
    timeMs: view.getFloat64(24, true),
    index: view.getUint32(32, true),
    isWhole: view.getUint32(crcAt, true) === crcOf(block),
  };
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >>> 1 ^ 0xedb88320 : rest >>> 1;
  return rest >>> 0;
});

/** CRC-32 of a block, as if its own field were not there. */
function crcOf(block: Uint8Array): number {
  let crc = 0xffffffff;
  for (let at = 0; at < blockBytes; at++) {
    if (at >= crcAt && at < fillAt) continue;
    crc = crc >>> 8 ^ table[(crc ^ block[at]!) & 0xff]!;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
