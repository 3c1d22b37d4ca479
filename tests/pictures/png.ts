import { Buffer } from "node:buffer";
import { crc32, deflateSync } from "node:zlib";
import { PNG } from "pngjs";

const mark = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Stores a picture of a page anew, as small as can be: without what is empty at its bottom, with its 256 main colours. */
export async function shrink(path: string): Promise<void> {
  const { width, height, data } = PNG.sync.read(Buffer.from(await Deno.readFile(path)));
  const row = (y: number) => data.subarray(4 * y * width, 4 * (y + 1) * width);
  let last = height - 1;
  while (last > 0 && row(last).equals(row(height - 1))) last--;
  const kept = Math.min(height, last + 24);
  const colours = Array.from({ length: width * kept }, (_, at) => data.readUInt32BE(4 * at) >>> 8);
  const { palette, indexOf } = paletteOf(colours);
  const lines = Buffer.alloc((width + 1) * kept);
  for (const [at, colour] of colours.entries()) {
    lines[Math.floor(at / width) * (width + 1) + 1 + at % width] = indexOf.get(colour)!;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(kept, 4);
  header.set([8, 3], 8);
  const bytes = palette.flatMap((colour) => partsOf(colour));
  await Deno.writeFile(
    path,
    Buffer.concat([
      mark,
      chunk("IHDR", header),
      chunk("PLTE", Buffer.from(bytes)),
      chunk("IDAT", deflateSync(lines, { level: 9 })),
      chunk("IEND", Buffer.alloc(0)),
    ]),
  );
}

/** The most frequent colours, and for each colour the nearest of them. */
function paletteOf(colours: readonly number[]) {
  const counts = new Map<number, number>();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const palette = [...counts].toSorted(([, one], [, other]) => other - one).slice(0, 256).map(([colour]) =>
    colour
  );
  const distance = (one: number, other: number) => {
    const [a, b] = [partsOf(one), partsOf(other)];
    return a.reduce((sum, part, at) => sum + (part - b[at]!) ** 2, 0);
  };
  const nearest = (colour: number) => {
    const known = palette.indexOf(colour);
    if (known >= 0) return known;
    const far = palette.map((other) => distance(colour, other));
    return far.indexOf(Math.min(...far));
  };
  return { palette, indexOf: new Map([...counts.keys()].map((colour) => [colour, nearest(colour)])) };
}

function partsOf(colour: number): number[] {
  return [colour >> 16, colour >> 8 & 255, colour & 255];
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
