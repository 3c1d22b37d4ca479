import assert from "node:assert/strict";
import { shrink } from "./shrink.ts";

const numbers = Array.from({ length: 30 }, (_, index) => index);

Deno.test("shrink() keeps the items that the failure needs, in their order", async () => {
  const fails = (left: readonly number[]) => Promise.resolve(left.includes(3) && left.includes(17));
  assert.deepEqual(await shrink(numbers, fails), [3, 17]);
});

Deno.test("shrink() removes an item that only a removed item needs", async () => {
  // 5 fails alone; with 9 it fails only together with 4.
  const fails = (left: readonly number[]) =>
    Promise.resolve(left.includes(5) && (!left.includes(9) || left.includes(4)));
  assert.deepEqual(await shrink(numbers, fails), [5]);
});

Deno.test("shrink() returns an irreducible list unchanged", async () => {
  assert.deepEqual(await shrink(numbers, (left) => Promise.resolve(left.length === 30)), numbers);
});
