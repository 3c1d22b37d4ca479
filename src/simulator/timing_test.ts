import assert from "node:assert/strict";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { spanOf, Timing } from "./timing.ts";

Deno.test("spanOf() lets a disk of 1 TiB take just under 3 s to add, and one of 1 GiB under half a second", () => {
  assert.deepEqual(spanOf("disk", "add", 1n << 30n), [300, 450]);
  assert.deepEqual(spanOf("disk", "add", 1n << 40n), [2900, 2900]);
  assert.deepEqual(spanOf("disk", "add", 1n << 41n), [2900, 2900]);
});

Deno.test("Timing.draw() stays within the span, scaled", () => {
  const timing = new Timing(0.5, new SeededRandom());
  const drawn = Array.from({ length: 100 }, () => timing.draw([100, 200]));
  assert.ok(drawn.every((ms) => ms >= 50 && ms < 100));
  assert.ok(new Set(drawn).size > 50);
});

Deno.test("Timing.draw() with scale 0 takes no time", () => {
  assert.equal(new Timing(0, new SeededRandom()).draw([100, 200]), 0);
});
