import assert from "node:assert/strict";
import { blockBytes, readStamp, writeStamp } from "./stamp.ts";

const stamp = { writer: "a", sequence: 2 ** 40 + 7, timeMs: 1234.5, index: 9 };

Deno.test("a stamp is read as it was written", () => {
  const block = new Uint8Array(blockBytes);
  writeStamp(block, stamp);
  assert.deepEqual(readStamp(block), { ...stamp, isWhole: true });
});

Deno.test("a block that nobody stamped has no stamp", () => {
  assert.equal(readStamp(new Uint8Array(blockBytes)), undefined);
});

for (const at of [8, 16, 24, 32, 36, 40, blockBytes - 1]) {
  Deno.test(`a block whose byte ${at} is another is not whole`, () => {
    const block = new Uint8Array(blockBytes);
    writeStamp(block, stamp);
    block[at]! ^= 1;
    assert.equal(readStamp(block)?.isWhole, false);
  });
}

Deno.test("a block of which one half is of another write is not whole", () => {
  const [old, young] = [new Uint8Array(blockBytes), new Uint8Array(blockBytes)];
  writeStamp(old, stamp);
  writeStamp(young, { ...stamp, sequence: stamp.sequence + 64 });
  young.set(old.subarray(blockBytes / 2), blockBytes / 2);
  assert.equal(readStamp(young)?.isWhole, false);
});
