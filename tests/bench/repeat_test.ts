import assert from "node:assert/strict";
import { measureUntilWithin } from "./repeat.ts";

Deno.test("measureUntilWithin() takes the first measurement that is within its limits", async () => {
  const { result, printed } = await measured([5, 4, 1]);
  assert.equal(result, 1);
  assert.deepEqual(printed, [
    "over its limit, measured again: 5 of 3",
    "over its limit, measured again: 4 of 3",
  ]);
});

Deno.test("measureUntilWithin() returns what is over its limit three times", async () => {
  const { result, printed } = await measured([5, 4, 6, 1]);
  assert.equal(result, 6);
  assert.equal(printed.length, 2);
});

Deno.test("measureUntilWithin() joins each measurement with those before it", async () => {
  const values = [5, 4, 4];
  const next = () => Promise.resolve(values.shift()!);
  const over = (value: number) => value > 3 ? ["over"] : [];
  assert.equal(await measureUntilWithin(next, over, () => {}, (before, next) => before + next - 6), 3);
  assert.deepEqual(values, [4]);
});

async function measured(values: number[]): Promise<{ result: number; printed: string[] }> {
  const printed: string[] = [];
  const result = await measureUntilWithin(
    () => Promise.resolve(values.shift()!),
    (value) => value > 3 ? [`${value} of 3`] : [],
    (line) => printed.push(line),
  );
  return { result, printed };
}
