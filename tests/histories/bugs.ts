/**
 * Plants bugs, each in a copy of the sources, and runs random schedules there until one breaks a promise; on all cores.
 * Writes dist/bugs.json and .md, and planted_mistakes.md.
 *
 * Usage: deno run -A tests/histories/bugs.ts
 *
 * It fails when a bug of planted_bugs.ts is not found, or too few of those that were drawn from all guards.
 */
import { join } from "node:path";
import { print } from "../../tools/print.ts";
import { projectRoot } from "../support/parts.ts";
import { onAllCores } from "./cores.ts";
import { plant } from "./plant.ts";
import { type PlantedBug, plantedBugs } from "./planted_bugs.ts";
import mistakes from "./planted_mistakes.json" with { type: "json" };
import { bugTable, type PlantedResult } from "./report.ts";

/** Schedules within which a bug has to be found. */
const [schedules, drawnSchedules] = [100_000, 20_000];
/** How many of the drawn mistakes have to be found. */
const wantedMistakes = 22;

const result = async (bug: PlantedBug, most: number): Promise<PlantedResult> => {
  const { found, schedules: tried } = await plant(bug, most);
  print(found === undefined ? `NOT FOUND in ${tried}: ${bug.title}` : `found after ${tried}: ${bug.title}`);
  return { title: bug.title, schedules: found && tried };
};
const startedMs = performance.now();
const planted = await onAllCores(plantedBugs, (bug) => result(bug, schedules));
const drawn = await onAllCores<PlantedBug, PlantedResult>(mistakes, (bug) => result(bug, drawnSchedules));
const found = drawn.filter(({ schedules }) => schedules !== undefined).length;
const seconds = Math.round((performance.now() - startedMs) / 1000);
print(`${found} of ${drawn.length} drawn mistakes found in ${drawnSchedules} schedules; ${seconds} s in all`);
const dist = join(projectRoot, "dist");
await Deno.mkdir(dist, { recursive: true });
await Deno.writeTextFile(
  join(dist, "bugs.json"),
  JSON.stringify({ seconds, planted, drawn }, null, 2) + "\n",
);
await Deno.writeTextFile(join(dist, "bugs.md"), bugTable(planted));
const about = `# Forgotten guards

Written by \`make proof/bugs\`. draw_mistakes.ts drew these guards of the controller. Each is forgotten in a copy of the
sources, and ${drawnSchedules} random schedules look for what it breaks.

`;
await Deno.writeTextFile(join(import.meta.dirname!, "planted_mistakes.md"), about + bugTable(drawn));
print("written: dist/bugs.json, dist/bugs.md, tests/histories/planted_mistakes.md");
const isFound = planted.every((bug) => bug.schedules !== undefined) && found >= wantedMistakes;
Deno.exit(isFound ? 0 : 1);
