import assert from "node:assert/strict";
import { wasMounted } from "./ever_mounted.ts";

for (
  const [name, time, count, mounted] of [
    ["was just made", 0, 0, false],
    ["was mounted", 1_764_137_109, 1, true],
    ["was mounted, and checked since", 1_764_137_109, 0, true],
    ["was mounted by a machine without a clock", 0, 1, true],
  ] as const
) {
  Deno.test(`wasMounted() is ${mounted} of an ext4 that ${name}`, () => {
    const start = new Uint8Array(4096);
    const view = new DataView(start.buffer);
    view.setUint32(1024 + 0x2c, time, true);
    view.setUint16(1024 + 0x34, count, true);
    assert.equal(wasMounted(start), mounted);
  });
}
