import assert from "node:assert/strict";
import { samplePlaces } from "./device_samples.ts";

const mebibyte = 1n << 20n;
const gibibyte = 1n << 30n;

for (
  const [what, sizeBytes, offset] of [
    ["ext4 of blocks of 1 KiB", gibibyte, 8n * mebibyte + 1024n],
    ["ext4 of blocks of 2 KiB", gibibyte, 32n * mebibyte],
    ["ext4 of blocks of 4 KiB", gibibyte, 128n * mebibyte],
    ["Btrfs", gibibyte, 64n * mebibyte],
    ["a large Btrfs", 1024n * gibibyte, 256n * gibibyte],
    ["xfs of four parts", gibibyte, gibibyte / 4n],
    ["xfs of four parts and a block", gibibyte + 4096n, gibibyte / 4n + 4096n],
  ] as const
) {
  Deno.test(`samplePlaces() has the copy of the superblock of ${what}`, () => {
    const isIn = ({ offset: at, length }: { offset: bigint; length: number }) =>
      at <= offset && offset + 512n <= at + BigInt(length);
    assert.ok(samplePlaces(sizeBytes).some(isIn));
  });
}

for (const sizeBytes of [mebibyte, 16n * mebibyte, 320n * mebibyte + 512n, 64n * 1024n * gibibyte]) {
  Deno.test(`samplePlaces() are whole blocks, few, and inside of a device of ${sizeBytes} bytes`, () => {
    const places = samplePlaces(sizeBytes);
    assert.ok(places.length <= 48);
    for (const { offset, length } of places) {
      assert.equal(offset % 4096n, 0n);
      assert.ok(offset + BigInt(length) <= sizeBytes);
    }
  });
}
