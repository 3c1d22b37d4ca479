import { inflateSync } from "node:zlib";

/** A picture: its size, and the colour of each of its points. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of a point, each up to 255. */
  at(x: number, y: number): readonly [red: number, green: number, blue: number];
}

/** Reads a PNG as browsers write it: 8 bits a channel, with colours, not interlaced. @throws {RangeError} for another one */
export function readPng(bytes: Uint8Array<ArrayBuffer>): Picture {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getBigUint64(0) !== 0x89504e470d0a1a0an) throw new RangeError("it is no PNG");
  const parts: Uint8Array[] = [];
  for (let at = 8; at < bytes.length; at += 12 + view.getUint32(at)) {
    const kind = new TextDecoder().decode(bytes.subarray(at + 4, at + 8));
    if (kind === "IDAT") parts.push(bytes.subarray(at + 8, at + 8 + view.getUint32(at)));
  }
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  const channels = { 2: 3, 6: 4 }[bytes[25]!];
  if (bytes[24] !== 8 || channels === undefined || bytes[28] !== 0) throw new RangeError("it is another PNG");
  const lines = unfiltered(inflateSync(concat(parts)), width * channels, height, channels);
  return {
    width,
    height,
    at: (x, y) => {
      const from = (y * width + x) * channels;
      return [lines[from]!, lines[from + 1]!, lines[from + 2]!];
    },
  };
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** PNG specification, "Filtering": each byte is a difference to what lies left, above, or both. */
function unfiltered(data: Uint8Array, stride: number, height: number, step: number): Uint8Array {
  const out = new Uint8Array(stride * height);
  for (let line = 0; line < height; line++) {
    const filter = data[line * (stride + 1)]!;
    for (let x = 0; x < stride; x++) {
      const left = x < step ? 0 : out[line * stride + x - step]!;
      const above = line === 0 ? 0 : out[(line - 1) * stride + x]!;
      const corner = x < step || line === 0 ? 0 : out[(line - 1) * stride + x - step]!;
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter]!;
      out[line * stride + x] = data[line * (stride + 1) + 1 + x]! + guess;
    }
  }
  return out;
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const [toLeft, toAbove, toCorner] = [left, above, corner].map((one) => Math.abs(guess - one)) as [
    number,
    number,
    number,
  ];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}
