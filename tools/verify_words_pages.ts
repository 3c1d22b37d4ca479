// Finds words that this code once coined in every page and in the chart's texts; the second half of
// `make verify/words`.

import { complain } from "./print.ts";
import { proseProblems } from "./verify_words.ts";

const { stdout } = await new Deno.Command("git", {
  args: ["ls-files", "*.md", "deploy/*.yaml", "deploy/*.json", "deploy/*.txt", "Makefile"],
  stderr: "inherit",
}).output();
const paths = new TextDecoder().decode(stdout).trimEnd().split("\n");
const found = (await Promise.all(
  paths.map(async (path) =>
    proseProblems(await Deno.readTextFile(path)).map((problem) => `${path}: ${problem}`)
  ),
)).flat();
for (const line of found) complain(line);
if (paths.length < 10) complain("git lists no pages");
Deno.exit(found.length === 0 && paths.length >= 10 ? 0 : 1);
