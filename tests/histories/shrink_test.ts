import assert from "node:assert/strict";
import { shrink } from "./shrink.ts";

const numbers = Array.from({ length: 30 }, (_, index) => index);

Deno.test("shrink() leaves what the failure needs, in its order", async () => {
  const fails = (left: readonly number[]) => Promise.resolve(left.includes(3) && left.includes(17));
  assert.deepEqual(await shrink(numbers, fails), [3, 17]);
});

Deno.test("shrink() leaves out what only something else needs that has gone", async () => {
  // 5 fails alone, and beside 9 only together with 4.
  const fails = (left: readonly number[]) =>
    Promise.resolve(left.includes(5) && (!left.includes(9) || left.includes(4)));
  assert.deepEqual(await shrink(numbers, fails), [5]);
});

Deno.test("shrink() returns a list that fails only whole as it is", async () => {
  assert.deepEqual(await shrink(numbers, (left) => Promise.resolve(left.length === 30)), numbers);
});
