import assert from "node:assert/strict";
import { join } from "node:path";
import { isLong } from "../support/long.ts";
import { projectRoot } from "../support/parts.ts";
import { search } from "./find.ts";
import { editsOf, type PlantedBug, plantedBugs } from "./planted_bugs.ts";
import mistakes from "./planted_mistakes.json" with { type: "json" };

Deno.test("no schedule of calls, crashes and reboots breaks a promise", async () => {
  const { found, answers } = await search(1, isLong ? 10_000 : 500);
  assert.equal(found, undefined, JSON.stringify(found, undefined, 1));
  for (const verb of ["create", "publish", "stage", "expand", "snapshot", "delete"]) {
    assert.ok((answers[`${verb} OK`] ?? 0) > 50, `the schedules do get something done: ${verb}`);
  }
});

Deno.test("the sources have each text into which a bug is planted once", () => {
  const all: readonly PlantedBug[] = [...plantedBugs, ...mistakes];
  const isThere = ({ file, from }: ReturnType<typeof editsOf>[number]) =>
    Deno.readTextFileSync(join(projectRoot, file)).split(from).length === 2;
  const moved = all.filter((bug) => !editsOf(bug).every(isThere));
  assert.deepEqual(moved.map(({ title }) => title), [], "draw_mistakes.ts draws the mistakes anew");
});
