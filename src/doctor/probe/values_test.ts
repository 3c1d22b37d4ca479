import assert from "node:assert/strict";
import type { Outcome } from "./question.ts";
import { judgeBoolean, judgeFileSize, judgeNumber } from "./values.ts";

type Judge = (value: string | bigint | boolean | null | undefined) => Outcome;

const cases: readonly (readonly [Judge, Parameters<Judge>[0], unknown])[] = [
  [judgeNumber, 5n, { numbers: "number" }],
  [judgeNumber, "5", { numbers: "text" }],
  [judgeNumber, "5.0GiB", {}],
  [judgeNumber, undefined, {}],
  [judgeBoolean, false, { booleans: "boolean" }],
  [judgeBoolean, "no", { booleans: "yes-no" }],
  [judgeBoolean, "maybe", {}],
  [judgeBoolean, undefined, {}],
  [judgeFileSize, 5n, { fileSize: "bytes" }],
  [judgeFileSize, "5", { fileSize: "bytes" }],
  [judgeFileSize, "5.0GiB", { fileSize: "human" }],
  [judgeFileSize, undefined, { fileSize: "absent" }],
  [judgeFileSize, null, {}],
];

for (const [judge, value, answers] of cases) {
  Deno.test(`${judge.name}() takes ${typeof value} ${String(value)} for ${JSON.stringify(answers)}`, () => {
    const outcome = judge(value);
    assert.deepEqual(outcome.answers, answers);
    const reasons = Object.values(outcome.unanswered);
    assert.equal(reasons.length, Object.keys(outcome.answers).length === 0 ? 1 : 0);
  });
}
