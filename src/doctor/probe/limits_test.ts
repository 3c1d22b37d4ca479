import assert from "node:assert/strict";
import { longest } from "./limits.ts";

const cases: readonly (readonly [limit: number, found: number | undefined])[] = [
  [0, undefined],
  [9, undefined],
  [10, 10],
  [11, 11],
  [63, 63],
  [64, 64],
  [1000, 64],
];

for (const [limit, found] of cases) {
  Deno.test(`longest() finds ${found} of 10 to 64 where ${limit} is the limit, and asks seldom`, async () => {
    let asked = 0;
    const works = (length: number) => {
      asked++;
      return Promise.resolve(length <= limit);
    };
    assert.equal(await longest(10, 64, works), found);
    assert.ok(asked <= 8, `${asked}`);
  });
}

Deno.test("longest() asks once where there is only one length", async () => {
  assert.equal(await longest(5, 5, () => Promise.resolve(false)), undefined);
  assert.equal(await longest(5, 5, () => Promise.resolve(true)), 5);
});
