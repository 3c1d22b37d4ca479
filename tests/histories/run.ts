/**
 * Runs random schedules on all cores, and writes dist/proof.json and .md.
 *
 * Usage: deno run -A tests/histories/run.ts [--schedules=100000] [--first=1]
 *
 * It fails when a schedule breaks a promise.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { print } from "../../tools/print.ts";
import { projectRoot } from "../support/parts.ts";
import type { Search } from "./find.ts";
import { onAllCores } from "./cores.ts";
import { searchIn } from "./plant.ts";
import { callTable, total } from "./report.ts";

/** How many schedules one process runs. */
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

const proof = { cores, seconds, ...sum };
const dist = join(projectRoot, "dist");
await Deno.mkdir(dist, { recursive: true });
await Deno.writeTextFile(join(dist, "proof.json"), JSON.stringify({ ...proof, searches }, null, 2) + "\n");
await Deno.writeTextFile(join(dist, "proof.md"), callTable(proof));
print("written: dist/proof.json, dist/proof.md");
Deno.exit(searches.every(({ found }) => found === undefined) ? 0 : 1);

function describe({ setting, steps, violations }: NonNullable<Search["found"]>): void {
  print(`seed ${setting.seed}: ${violations.join("; ")}`);
  for (const step of steps) print(`  ${JSON.stringify(step)}`);
}
