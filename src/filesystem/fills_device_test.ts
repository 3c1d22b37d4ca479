import assert from "node:assert/strict";
import { fillsDevice, superblockBytes } from "./fills_device.ts";

/** The start of an ext4 with blocks of 4 KiB. */
function ext4(blocks: bigint, { magic = 0xef53, features = 0x80 } = {}): Uint8Array {
  const start = new Uint8Array(superblockBytes);
  const view = new DataView(start.buffer, 1024);
  view.setUint32(0x4, Number(blocks & 0xffffffffn), true);
  view.setUint32(0x18, 2, true);
  view.setUint16(0x38, magic, true);
  view.setUint32(0x60, features, true);
  view.setUint32(0x150, Number(blocks >> 32n), true);
  return start;
}

/** The start of an xfs with blocks of 4 KiB. */
function xfs(blocks: bigint, magic = "XFSB"): Uint8Array {
  const start = new Uint8Array(superblockBytes);
  start.set(new TextEncoder().encode(magic));
  const view = new DataView(start.buffer);
  view.setUint32(4, 4096);
  view.setBigUint64(8, blocks);
  return start;
}

const gibibyte = 1n << 30n;
const blocks = gibibyte / 4096n;

for (
  const [name, start, filesystem, deviceBytes, fills] of [
    ["an ext4 of the device's size", ext4(blocks), "ext4", gibibyte, true],
    ["an ext4 that leaves less than a block", ext4(blocks), "ext4", gibibyte + 4095n, true],
    ["an ext4 that leaves a block", ext4(blocks), "ext4", gibibyte + 4096n, false],
    ["an ext4 of 32 TiB", ext4(1n << 33n), "ext4", 1n << 45n, true],
    ["an ext4 whose high bits count for nothing", ext4(1n << 33n, { features: 0 }), "ext4", 1n << 45n, false],
    ["no ext4", ext4(blocks, { magic: 0 }), "ext4", gibibyte, false],
    ["an xfs of the device's size", xfs(blocks), "xfs", gibibyte, true],
    ["an xfs that leaves a block", xfs(blocks), "xfs", gibibyte + 4096n, false],
    ["no xfs", xfs(blocks, "none"), "xfs", gibibyte, false],
    ["zeros for an xfs", new Uint8Array(superblockBytes), "xfs", gibibyte, false],
  ] as const
) {
  Deno.test(`fillsDevice() is ${fills} of ${name}`, () => {
    assert.equal(fillsDevice(start, filesystem, deviceBytes), fills);
  });
}
