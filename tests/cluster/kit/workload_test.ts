import assert from "node:assert/strict";
import { parseMebibytes } from "./workload.ts";

Deno.test("parseMebibytes() parses the quantities of volumes, and nothing else", () => {
  const cases: readonly (readonly [string | undefined, number])[] = [
    ["1Gi", 1024],
    ["2048Mi", 2048],
    ["1073741824", 1024],
    ["512Ki", 0.5],
    ["1Ti", 1 << 20],
    ["1.5Gi", NaN],
    ["1G", NaN],
    ["", NaN],
    [undefined, NaN],
  ];
  for (const [quantity, expected] of cases) assert.equal(parseMebibytes(quantity), expected, quantity);
});
