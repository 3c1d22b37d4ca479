import assert from "node:assert/strict";
import { defaultKnobs, parseKnobs, printableKnobs } from "./knobs.ts";

Deno.test("parseKnobs() reads words, limits and durations as people write them", () => {
  assert.deepEqual(
    parseKnobs({
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
  assert.deepEqual(parseKnobs({ unexport: "kills" }), { unexport: 0 });
});

for (
  const [name, value] of [["foo", "1"], ["grow", "later"], ["maxPut", "-1"], ["interleave", "2"]] as const
) {
  Deno.test(`parseKnobs() throws for ${name}=${value}`, () => {
    assert.throws(() => parseKnobs({ [name]: value }), RangeError);
  });
}

Deno.test("parseKnobs() reads what printableKnobs() writes, through JSON", () => {
  const written = JSON.parse(JSON.stringify(printableKnobs(defaultKnobs)));
  assert.deepEqual(parseKnobs(written), defaultKnobs);
});
