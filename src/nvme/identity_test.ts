import assert from "node:assert/strict";
import { parseController, parseNamespace } from "./identity.ts";
import { assertUnreadable } from "./nvme_test_support.ts";
import { viewOf } from "./wire.ts";

function page(...parts: readonly (readonly [at: number, ...bytes: readonly number[]])[]): Uint8Array {
  const bytes = new Uint8Array(4096);
  for (const [at, ...values] of parts) bytes.set(values, at);
  return bytes;
}

Deno.test("parseNamespace() multiplies the blocks, of the format in use", () => {
  const bytes = page([26, 0x21], [128 + 2, 9], [128 + 4 * 17 + 2, 12]);
  viewOf(bytes).setBigUint64(0, 2n ** 40n, true);
  assert.deepEqual(parseNamespace(bytes), { sizeBytes: 2n ** 52n, blockBytes: 4096 });
});

Deno.test("parseNamespace() gives undefined where all is zero", () => {
  assert.equal(parseNamespace(page([0, 8], [130, 9]))?.sizeBytes, 4096n);
  assert.equal(parseNamespace(page()), undefined);
});

for (const exponent of [0, 8, 17, 255]) {
  Deno.test(`parseNamespace() throws unavailable for blocks of 2^${exponent} bytes`, () => {
    assertUnreadable(() => parseNamespace(page([0, 8], [130, exponent])), /impossible size/);
  });
}

Deno.test("parseController() knows the longest transfer, if there is one", () => {
  assert.equal(parseController(page()).longestTransferBytes, Infinity);
  assert.equal(parseController(page([77, 5])).longestTransferBytes, 131_072);
});
