import assert from "node:assert/strict";
import { judgeSeries } from "./growth.ts";

Deno.test("judgeSeries() compares the last third of a figure with the first, by their medians", () => {
  const peaks = [10, 10, 99, 11, 12, 11, 99, 13, 14];
  assert.equal(judgeSeries({ of: "ms", values: peaks, factor: 1.5 }).flat, true);
  assert.equal(judgeSeries({ of: "ms", values: peaks, factor: 1.2 }).flat, false);
  assert.equal(judgeSeries({ of: "files", values: [10, 10, 10, 12, 14, 16], more: 5 }).flat, false);
  assert.match(judgeSeries({ of: "files", values: [10, 10, 10, 12, 14, 16], more: 6 }).text, /10 .* 16/);
});
