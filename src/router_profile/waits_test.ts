import assert from "node:assert/strict";
import type { RouterBehaviours } from "./answers.ts";
import { unexportGraceFor } from "./waits.ts";

const cases: readonly (readonly [Partial<RouterBehaviours>, number | undefined])[] = [
  [{}, undefined],
  [{ unexport: 0 }, 1000],
  [{ unexport: 500 }, 1000],
  [{ unexport: 5000 }, 10_000],
  [{ unexport: "refuses-commands" }, undefined],
];

for (const [answers, graceMs] of cases) {
  Deno.test(`unexportGraceFor() leaves room above ${JSON.stringify(answers)}`, () => {
    assert.equal(unexportGraceFor(answers), graceMs);
  });
}
