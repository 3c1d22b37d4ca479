import assert from "node:assert/strict";
import type { RouterBehaviours } from "./answers.ts";
import { narrowLimits } from "./limits.ts";

const cases: readonly (readonly [answers: Partial<RouterBehaviours>, named: readonly string[]])[] = [
  [{}, []],
  [{ maxComment: 200, maxSlot: 32, maxNqn: 76 }, []],
  [{ maxComment: Infinity, maxSlot: Infinity, maxNqn: Infinity }, []],
  [{ maxComment: 199 }, ["maxComment"]],
  [{ maxSlot: 31 }, ["maxSlot"]],
  [{ maxNqn: 75 }, ["maxNqn"]],
  [{ maxCommand: 1024 }, []],
  [{ maxCommand: 1023 }, ["maxCommand"]],
  [{ maxPut: 2048 }, []],
  [{ maxPut: 2047 }, ["maxPut"]],
  [{ maxComment: 0, maxSlot: 0, maxNqn: 0, maxCommand: 0 }, [
    "maxComment",
    "maxSlot",
    "maxNqn",
    "maxCommand",
  ]],
];

for (const [answers, named] of cases) {
  Deno.test(`narrowLimits() names ${named.join(", ") || "nothing"} for ${JSON.stringify(answers)}`, () => {
    assert.deepEqual(narrowLimits(answers, 76).map((reason) => reason.split(" ")[0]), named);
  });
}
