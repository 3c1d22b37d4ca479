// Draws mistakes from the guards that the schedules' calls go through, and writes them into planted_mistakes.json.
// Usage: deno run -A tests/histories/draw_mistakes.ts [SEED] [COUNT]
import { join } from "node:path";
import { print } from "../../tools/print.ts";
import { SeededRandom } from "../fakes/random.ts";
import { projectRoot } from "../support/parts.ts";
import { importedBy, mistakesIn } from "./guards.ts";

/** The entry points of what a schedule calls. */
const entries = [
  "attachments/publish.ts",
  "attachments/unpublish.ts",
  "reconcile/reconciler.ts",
  "snapshots/create.ts",
  "snapshots/delete.ts",
  "volumes/create.ts",
  "volumes/delete.ts",
  "volumes/expand.ts",
].map((name) => `src/controller/${name}`);

const [seed = 7, count = 25] = Deno.args.map(Number);
const files = (await importedBy(projectRoot, entries))
  .filter((name) => /^src\/(?:controller|volume\/rules)\//.test(name));
const all = (await Promise.all(
  files.map(async (file) => mistakesIn(await Deno.readTextFile(join(projectRoot, file)), file)),
)).flat();
const random = new SeededRandom(seed);
const drawn = Array.from(
  { length: count },
  () => all.splice(Math.floor(random.fraction() * all.length), 1)[0]!,
);
print(`${count} of ${all.length + count} guards in ${files.length} files`);
await Deno.writeTextFile(
  join(import.meta.dirname!, "planted_mistakes.json"),
  JSON.stringify(drawn, undefined, 2) + "\n",
);
