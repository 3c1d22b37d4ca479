import assert from "node:assert/strict";
import { parsePropagation } from "./propagation.ts";

Deno.test("parsePropagation() reads the optional fields", () => {
  const text = [
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    "28 27 0:5 / /dev rw shared:2 - devtmpfs devtmpfs rw",
    "29 27 0:6 / /a rw master:3 propagate_from:2 - tmpfs tmpfs rw",
    "30 27 0:7 / /a\\040b rw shared:4 master:3 - tmpfs shared:9 rw",
    "",
  ].join("\n");
  assert.deepEqual([...parsePropagation(text)], [
    [27, "private"],
    [28, "shared"],
    [29, "slave"],
    [30, "shared and slave"],
  ]);
});
