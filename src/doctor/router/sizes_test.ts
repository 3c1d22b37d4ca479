import assert from "node:assert/strict";
import { formatBytes } from "./sizes.ts";

for (
  const [bytes, text] of [
    [0n, "0 B"],
    [1023n, "1023 B"],
    [1536n, "1.5 KiB"],
    [7_301_927_047_168n, "6.6 TiB"],
    [1n << 62n, "4096.0 PiB"],
  ] as const
) {
  Deno.test(`formatBytes() writes ${bytes} as ${text}`, () => assert.equal(formatBytes(bytes), text));
}
