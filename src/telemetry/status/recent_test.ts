import assert from "node:assert/strict";
import { Latencies, Recent } from "./recent.ts";

Deno.test("Recent keeps the last items, the latest first", () => {
  const recent = new Recent<number>(3);
  for (const one of [1, 2, 3, 4, 5]) recent.add(one);
  assert.deepEqual(recent.latestFirst(), [5, 4, 3]);
});

Deno.test("Latencies reports nothing without a value, and a single value as it is", () => {
  const latencies = new Latencies();
  const nothing = { medianMs: undefined, p99Ms: undefined };
  assert.deepEqual(latencies.read(), { count: 0, ...nothing });
  latencies.add(7);
  assert.deepEqual(latencies.read(), { count: 1, medianMs: 7, p99Ms: 7 });
});

Deno.test("Latencies counts all, and reports the last 256 durations", () => {
  const latencies = new Latencies();
  for (let i = 0; i < 1000; i++) latencies.add(100_000);
  for (let i = 1; i <= 256; i++) latencies.add(i);
  assert.deepEqual(latencies.read(), { count: 1256, medianMs: 128, p99Ms: 254 });
});
