import assert from "node:assert/strict";
import { parseActiveNamespaces, parseController, parseDescriptors, parseNamespace } from "./identity.ts";
import { assertUnreadable } from "../../tests/support/nvme_host.ts";
import { viewOf } from "./wire.ts";

function page(...parts: readonly (readonly [at: number, ...bytes: readonly number[]])[]): Uint8Array {
  const bytes = new Uint8Array(4096);
  for (const [at, ...values] of parts) bytes.set(values, at);
  return bytes;
}

Deno.test("parseNamespace() multiplies the blocks by the size of the format in use", () => {
  const bytes = page([26, 0x21], [128 + 2, 9], [128 + 4 * 17 + 2, 12], [104, 0xab], [127, 0x01]);
  viewOf(bytes).setBigUint64(0, 2n ** 40n, true);
  assert.deepEqual(parseNamespace(bytes), {
    sizeBytes: 2n ** 52n,
    blockBytes: 4096,
    nguid: "ab" + "00".repeat(15),
    eui64: "00".repeat(7) + "01",
  });
});

Deno.test("parseNamespace() takes blocks of 512 bytes to 64 KiB", () => {
  const blocks = [9, 16].map((exponent) => parseNamespace(page([0, 8], [130, exponent]))?.blockBytes);
  assert.deepEqual(blocks, [512, 65_536]);
});

Deno.test("parseNamespace() returns no id for an all-zero id, and undefined for an all-zero namespace", () => {
  const namespace = parseNamespace(page([0, 8], [130, 9]));
  assert.deepEqual([namespace?.nguid, namespace?.eui64, namespace?.sizeBytes], ["", "", 4096n]);
  assert.equal(parseNamespace(page()), undefined);
});

for (const exponent of [0, 8, 17, 255]) {
  Deno.test(`parseNamespace() throws unavailable for blocks of 2^${exponent} bytes`, () => {
    assertUnreadable(() => parseNamespace(page([0, 8], [130, exponent])), /impossible size/);
  });
}

Deno.test("parseController() returns the longest transfer, if there is a limit", () => {
  assert.equal(parseController(page()).longestTransferBytes, Infinity);
  assert.equal(parseController(page([77, 5])).longestTransferBytes, 131_072);
});

Deno.test("parseController() reads the serial number without trailing blanks", () => {
  const bytes = page();
  bytes.set(new TextEncoder().encode("0123456789abcdef    "), 4);
  assert.equal(parseController(bytes).serial, "0123456789abcdef");
});

Deno.test("parseController() knows what a command may bring along, and whether blocks can be discarded", () => {
  const read = (...parts: readonly (readonly [at: number, ...bytes: readonly number[]])[]) => {
    const { inCapsuleBytes, takesDiscards } = parseController(page(...parts));
    return [inCapsuleBytes, takesDiscards];
  };
  assert.deepEqual(read(), [0, false]);
  assert.deepEqual(read([1792, 4], [520, 0b1000]), [0, false]);
  // As Linux says it: (64 + 16384) / 16.
  assert.deepEqual(read([1792, 0x04, 0x04], [520, 0b1100]), [16_384, true]);
  assert.deepEqual(read([1792, 0x04, 0x04], [1800, 1]), [0, false], "data somewhere else");
});

Deno.test("parseDescriptors() reads known descriptors and leaves out the rest", () => {
  const uuid = Array.from({ length: 16 }, (_, index) => index);
  const bytes = page([0, 3, 16, 0, 0, ...uuid, 4, 1, 0, 0, 9, 1, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(parseDescriptors(bytes), {
    uuid: "000102030405060708090a0b0c0d0e0f",
    eui64: "0102030405060708",
    nguid: "",
  });
  assert.deepEqual(parseDescriptors(page()), { uuid: "", eui64: "", nguid: "" });
});

Deno.test("parseDescriptors() throws unavailable for an id of the wrong length, or beyond the end", () => {
  assertUnreadable(() => parseDescriptors(page([0, 2, 8])), /type=2 bytes=8/);
  assertUnreadable(() => parseDescriptors(page([0, 9, 255]).subarray(0, 100)), /type=9 bytes=255/);
});

Deno.test("parseActiveNamespaces() reads up to the first zero, or to the end", () => {
  assert.deepEqual(parseActiveNamespaces(page([0, 1, 0, 0, 0, 3, 0, 0, 0])), [1, 3]);
  assert.deepEqual(parseActiveNamespaces(page()), []);
  assert.equal(parseActiveNamespaces(new Uint8Array(4096).fill(1)).length, 1024);
});
