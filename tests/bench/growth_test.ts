import assert from "node:assert/strict";
import { judge, judgeSeries, type Sample } from "./growth.ts";

const required = { limitBytes: 110e6, of: "call" };

function curve(megabytes: (done: number) => number): Sample[] {
  return Array.from({ length: 21 }, (_, i) => ({
    done: i * 5000,
    rssBytes: megabytes(i * 5000) * 1e6,
    ms: i,
  }));
}

Deno.test("judge() calls a curve flat that rises while warming up and then breathes", () => {
  assert.equal(judge(curve((n) => 70 + 25 * Math.min(1, n / 20_000) + (n / 5000) % 3), required).flat, true);
});

Deno.test("judge() does not call a curve flat that goes on rising by 0.2 KB a call", () => {
  assert.equal(judge(curve((n) => 70 + n * 200 / 1e6), required).flat, false);
});

Deno.test("judge() does not call a curve flat that is above 110 MB", () => {
  assert.equal(judge(curve((n) => n === 15_000 ? 111 : 90), required).flat, false);
});

Deno.test("judge() judges a short run by its height alone and says so", () => {
  const result = judge(curve((n) => 70 + n / 1000).slice(0, 4), required);
  assert.equal(result.flat, true);
  assert.match(result.text, /too few/);
});

Deno.test("judge() takes the warm-up and the growth that it is given", () => {
  const stages = { limitBytes: 150e6, of: "stage", warmUp: 2_000, maxSlopeBytes: 400 };
  const rising = (bytes: number) =>
    curve((n) => 70 + n * bytes / 1e6 / 10).map((s) => ({ ...s, done: s.done / 10 }));
  assert.equal(judge(rising(300), stages).flat, true);
  assert.equal(judge(rising(500), stages).flat, false);
});

Deno.test("judgeSeries() compares the last third of a figure with the first, by their medians", () => {
  const peaks = [10, 10, 99, 11, 12, 11, 99, 13, 14];
  assert.equal(judgeSeries({ of: "ms", values: peaks, factor: 1.5 }).flat, true);
  assert.equal(judgeSeries({ of: "ms", values: peaks, factor: 1.2 }).flat, false);
  assert.equal(judgeSeries({ of: "files", values: [10, 10, 10, 12, 14, 16], more: 5 }).flat, false);
  assert.match(judgeSeries({ of: "files", values: [10, 10, 10, 12, 14, 16], more: 6 }).text, /10 .* 16/);
});
