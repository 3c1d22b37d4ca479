import assert from "node:assert/strict";
import { answerReaders, defaultRouterBehaviours, parseSettings } from "./answers.ts";

const parse = (settings: Record<string, unknown>) => parseSettings(answerReaders, settings);

Deno.test("parseSettings() reads words and durations as people write them", () => {
  assert.deepEqual(
    parse({
      limits: "too small",
      grow: "after toggle",
      unexport: "lingers 5000",
    }),
    { limits: "too-small", unexport: 5000, grow: "after-toggle" },
  );
  assert.deepEqual(parse({ unexport: "kills" }), { unexport: 0 });
  assert.deepEqual(parse({ unexport: "refuses commands" }), { unexport: "refuses-commands" });
});

for (
  const [name, value] of [["foo", "1"], ["grow", "never"], ["unexport", "-1"], ["limits", "255"]] as const
) {
  Deno.test(`parseSettings() throws for ${name}=${value}`, () => {
    assert.throws(() => parse({ [name]: value }), RangeError);
  });
}

Deno.test("parseSettings() reads answers that went through JSON", () => {
  const written = JSON.parse(JSON.stringify(defaultRouterBehaviours));
  assert.deepEqual(parse(written), defaultRouterBehaviours);
});
