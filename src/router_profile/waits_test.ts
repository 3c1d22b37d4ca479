import assert from "node:assert/strict";
import type { RouterBehaviours } from "./answers.ts";
import { type Waits, waitsFor } from "./waits.ts";

const cases: readonly (readonly [Partial<RouterBehaviours>, Partial<Waits>])[] = [
  [{}, { settleMs: undefined, unexportGraceMs: undefined }],
  [{ disksLate: 0, unexport: 0 }, { settleMs: 30_000, unexportGraceMs: 1000 }],
  [{ disksLate: 13_000, unexport: 500 }, { settleMs: 30_000, unexportGraceMs: 1000 }],
  [{ disksLate: 60_000, unexport: 5000 }, { settleMs: 100_000, unexportGraceMs: 10_000 }],
];

for (const [answers, waits] of cases) {
  Deno.test(`waitsFor() leaves room above ${JSON.stringify(answers)}`, () => {
    assert.deepEqual(waitsFor(answers), waits);
  });
}
