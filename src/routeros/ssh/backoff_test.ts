import assert from "node:assert/strict";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { backoffMs } from "./backoff.ts";

const options = { firstMs: 100, mostMs: 1000 };

Deno.test("backoffMs() waits for nothing before the first failure", () => {
  assert.equal(backoffMs(0, new SeededRandom(), options), 0);
});

Deno.test("backoffMs() doubles up to the most, and draws from the upper half", () => {
  const random = new SeededRandom(7);
  for (const [failures, full] of [[1, 100], [2, 200], [3, 400], [4, 800], [5, 1000], [5000, 1000]] as const) {
    for (let i = 0; i < 50; i++) {
      const ms = backoffMs(failures, random, options);
      assert.ok(ms >= full / 2 && ms <= full, `${failures} failures: ${ms}`);
    }
  }
});

Deno.test("backoffMs() differs between clients", () => {
  const delays = Array.from({ length: 20 }, (_, seed) => backoffMs(5, new SeededRandom(seed), options));
  assert.ok(new Set(delays).size > 10);
});
