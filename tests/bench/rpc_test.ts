import assert from "node:assert/strict";
import { percentile } from "./rpc.ts";

Deno.test("percentile() is the smallest value that covers the share", () => {
  const values = [5, 1, 4, 2, 3];
  assert.deepEqual([percentile(values, 0.5), percentile(values, 0.99), percentile([7], 0.5)], [3, 5, 7]);
});
