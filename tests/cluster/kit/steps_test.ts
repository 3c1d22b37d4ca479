import assert from "node:assert/strict";
import { judged, watchSteps } from "./steps.ts";

const waiting = {
  limitSeconds: 0.2,
  signal: new AbortController().signal,
  trouble: () => Promise.resolve("no events"),
};

Deno.test("watchSteps() checks a step until it is done, and no longer", async () => {
  const looks = { early: 0, late: 0 };
  const steps = await watchSteps(performance.now(), {
    early: () => Promise.resolve(++looks.early === 1),
    late: () => Promise.resolve(++looks.late === 3),
  }, waiting);
  assert.deepEqual(looks, { early: 1, late: 3 });
  assert(steps.early! < steps.late!, "the late step was done at once");
});

Deno.test("watchSteps() names the steps that are not done in time", async () => {
  const steps = { done: () => Promise.resolve(true), missing: () => Promise.resolve(false) };
  await assert.rejects(watchSteps(performance.now(), steps, waiting), /in vain .*open: missing; no events/);
});

Deno.test("judged() returns the medians, the earliest step first", () => {
  const all = [{ last: 9, first: 1 }, { last: 5, first: 3 }, { last: 7, first: 2 }];
  assert.equal(judged(all, 7), "medians of 3: first 2.0 s, last 7.0 s");
});

for (
  const { name, all } of [
    { name: "a median above the limit", all: [{ last: 5 }, { last: 7.1 }, { last: 9 }] },
    { name: "no rounds", all: [] },
  ]
) {
  Deno.test(`judged() throws for ${name}`, () => {
    assert.throws(() => judged(all, 7), assert.AssertionError);
  });
}
