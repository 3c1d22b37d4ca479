import assert from "node:assert/strict";
import { mistakesIn } from "./guards.ts";

const rows: readonly (readonly [what: string, line: string, left: string | undefined])[] = [
  ["a call that only throws", `  assertNotHeld(found);`, ""],
  ["one that is awaited", `    await assertPair(call, id);`, ""],
  [
    "a condition that throws",
    `  if (a(b(c)) > 1) throw new Error("x");`,
    `  if (false) throw new Error("x");`,
  ],
  ["a condition with a block", `  if (left > 0) {`, `  if (false) {`],
  ["the last of several conditions", `  return one && two(three);`, `  return one;`],
  ["no telling of what is absent", `  if (volume?.id === undefined) return;`, undefined],
  ["no half of a bracket", `  call({ a: () => one && two(three) });`, undefined],
  ["nothing else", `  const one = two(three);`, undefined],
];

for (const [what, line, left] of rows) {
  Deno.test(`mistakesIn() forgets guards: ${what}`, () => {
    const found = mistakesIn(["const before = 1;", line, "}"].join("\n"), "a.ts");
    assert.deepEqual(found.map(({ from, to }) => [from, to]), left === undefined ? [] : [[line, left]]);
  });
}

Deno.test("mistakesIn() takes lines above a guard that occurs twice, until the text is unique", () => {
  const source = ["one();", "  assertIt(a);", "two();", "  assertIt(a);"].join("\n");
  assert.deepEqual(mistakesIn(source, "a.ts").map(({ from, to }) => [from, to]), [
    ["one();\n  assertIt(a);", "one();\n"],
    ["two();\n  assertIt(a);", "two();\n"],
  ]);
});
