import assert from "node:assert/strict";
import { isLong } from "../support/long.ts";
import { search } from "./find.ts";
import { plant } from "./plant.ts";
import { plantedBugs } from "./planted_bugs.ts";

Deno.test("no schedule of calls, crashes and reboots breaks a promise", async () => {
  const { found, answers } = await search(1, isLong ? 10_000 : 500);
  assert.equal(found, undefined, JSON.stringify(found, undefined, 1));
  for (const verb of ["create", "publish", "stage", "expand", "snapshot", "delete"]) {
    assert.ok((answers[`${verb} OK`] ?? 0) > 50, `the schedules do get something done: ${verb}`);
  }
});

for (const bug of plantedBugs.filter(({ rare }) => isLong || rare !== true)) {
  Deno.test(`the histories find a planted bug: ${bug.title}`, async () => {
    const { found } = await plant(bug, bug.rare === true ? 20_000 : 300);
    assert.ok(found !== undefined, "no schedule breaks a promise");
    assert.ok(found.violations.length > 0);
  });
}
