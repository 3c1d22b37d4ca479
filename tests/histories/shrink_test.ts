import assert from "node:assert/strict";
import { shrink } from "./shrink.ts";

const numbers = Array.from({ length: 30 }, (_, index) => index);

Deno.test("shrink() keeps what the failure needs, in its order", async () => {
  const fails = (left: readonly number[]) => Promise.resolve(left.includes(3) && left.includes(17));
  assert.deepEqual(await shrink(numbers, fails), [3, 17]);
});

Deno.test("shrink() removes items that only removed ones needed", async () => {
  // 5 fails alone, and beside 9 only together with 4.
  const fails = (left: readonly number[]) =>
    Promise.resolve(left.includes(5) && (!left.includes(9) || left.includes(4)));
  assert.deepEqual(await shrink(numbers, fails), [5]);
});

Deno.test("shrink() returns a list unchanged that only fails as a whole", async () => {
  assert.deepEqual(await shrink(numbers, (left) => Promise.resolve(left.length === 30)), numbers);
});
