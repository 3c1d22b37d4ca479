/**
 * Runs random schedules on all cores, then plants bugs, and writes dist/proof.json, .md and .svg.
 *
 * Usage: deno run -A tests/histories/run.ts [--schedules=100000] [--first=1]
 *
 * It fails when a schedule breaks a promise, or when a planted bug is not found.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { print } from "../../tools/print.ts";
import { projectRoot } from "../support/parts.ts";
import type { Search } from "./find.ts";
import { plant, searchIn } from "./plant.ts";
import { plantedBugs } from "./planted_bugs.ts";
import { chart, type PlantedResult, tables, total } from "./report.ts";

/** The number of schedules in one process. */
const chunk = 5_000;

const options = {
  schedules: { type: "string", default: "100000" },
  first: { type: "string", default: "1" },
} as const;
const [schedules, first] = Object.values(parseArgs({ args: Deno.args, options }).values).map(Number) as [
  number,
  number,
];
const cores = navigator.hardwareConcurrency;

const startedMs = performance.now();
const chunks = Array.from({ length: Math.ceil(schedules / chunk) }, (_, index) => index * chunk);
const searches = await onAllCores(
  chunks,
  (from) => searchIn(projectRoot, first + from, Math.min(chunk, schedules - from)),
);
const seconds = Math.round((performance.now() - startedMs) / 1000);
const sum = total(searches);
print(`${sum.schedules} schedules, ${sum.events} events, on ${cores} cores in ${seconds} s`);
for (const { found } of searches) if (found !== undefined) describe(found);

const planted = await onAllCores(plantedBugs, async (bug): Promise<PlantedResult> => {
  const { found, schedules: tried } = await plant(bug, schedules);
  print(found === undefined ? `NOT FOUND in ${tried}: ${bug.title}` : `found after ${tried}: ${bug.title}`);
  return { title: bug.title, schedules: found && tried, steps: found?.steps.length };
});
const proof = { cores, seconds, ...sum, planted };
const dist = join(projectRoot, "dist");
await Deno.mkdir(dist, { recursive: true });
await Deno.writeTextFile(join(dist, "proof.json"), JSON.stringify({ ...proof, searches }, null, 2) + "\n");
await Deno.writeTextFile(join(dist, "proof.md"), tables(proof));
await Deno.writeTextFile(join(dist, "proof.svg"), chart(proof));
print("written: dist/proof.json, dist/proof.md, dist/proof.svg");
const isProven = searches.every(({ found }) => found === undefined) &&
  planted.every((bug) => bug.schedules !== undefined);
Deno.exit(isProven ? 0 : 1);

function describe({ setting, steps, violations }: NonNullable<Search["found"]>): void {
  print(`seed ${setting.seed}: ${violations.join("; ")}`);
  for (const step of steps) print(`  ${JSON.stringify(step)}`);
}

async function onAllCores<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = [...items.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      results[next[0]] = await work(next[1]);
    }
  };
  await Promise.all(Array.from({ length: cores }, worker));
  return results;
}
