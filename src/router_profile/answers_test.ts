import assert from "node:assert/strict";
import { answerReaders, defaultRouterBehaviours, parseSettings, printableBehaviours } from "./answers.ts";

const parse = (settings: Record<string, unknown>) => parseSettings(answerReaders, settings);

Deno.test("parseSettings() reads words, limits and durations as people write them", () => {
  assert.deepEqual(
    parse({
      textMatch: "ignore case",
      grow: "after toggle",
      maxPut: "4096",
      maxSlot: "unlimited",
      unexport: "lingers 5000",
    }),
    {
      textMatch: "ignore-case",
      maxPut: 4096,
      maxSlot: Infinity,
      unexport: 5000,
      grow: "after-toggle",
    },
  );
  assert.deepEqual(parse({ unexport: "kills" }), { unexport: 0 });
});

for (
  const [name, value] of [["foo", "1"], ["grow", "later"], ["maxPut", "-1"], ["allocation", "2"]] as const
) {
  Deno.test(`parseSettings() throws for ${name}=${value}`, () => {
    assert.throws(() => parse({ [name]: value }), RangeError);
  });
}

Deno.test("parseSettings() reads what printableBehaviours() writes, through JSON", () => {
  const written = JSON.parse(JSON.stringify(printableBehaviours(defaultRouterBehaviours)));
  assert.deepEqual(parse(written), defaultRouterBehaviours);
});
