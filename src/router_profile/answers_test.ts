import assert from "node:assert/strict";
import { defaultAnswers, parseAnswers, printableAnswers } from "./answers.ts";

Deno.test("parseAnswers() reads words, limits and durations as people write them", () => {
  assert.deepEqual(
    parseAnswers({
      emptyFind: "no such item",
      exitOnError: 1,
      interleave: "yes",
      maxPut: "4096",
      maxSlot: "unlimited",
      unexport: "lingers 5000",
      grow: "after-toggle",
    }),
    {
      emptyFind: "no-such-item",
      exitOnError: 1,
      interleave: true,
      maxPut: 4096,
      maxSlot: Infinity,
      unexport: 5000,
      grow: "after-toggle",
    },
  );
  assert.deepEqual(parseAnswers({ unexport: "kills" }), { unexport: 0 });
});

for (
  const [name, value] of [["foo", "1"], ["grow", "later"], ["maxPut", "-1"], ["interleave", "2"]] as const
) {
  Deno.test(`parseAnswers() throws for ${name}=${value}`, () => {
    assert.throws(() => parseAnswers({ [name]: value }), RangeError);
  });
}

Deno.test("parseAnswers() reads what printableAnswers() writes, through JSON", () => {
  const written = JSON.parse(JSON.stringify(printableAnswers(defaultAnswers)));
  assert.deepEqual(parseAnswers(written), defaultAnswers);
});
