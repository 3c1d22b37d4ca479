import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/parts.ts";
import { suites } from "../cluster/suites.ts";
import { readPage } from "./pages.ts";
import { plantedPath, testOf } from "./planted_page.ts";
import { promiseBugs } from "./promise_bugs.ts";

const page = readPage("docs/internals/promises.md").text;

/** The files that the page names as the tests of a promise. */
const named = [...page.matchAll(/`((?:src|tests|tools)\/[^`]+\.ts)`/g)].map(([, path]) => path!);

Deno.test("every file that tests a promise exists", () => {
  const missing = named.filter((path) => !existsSync(join(projectRoot, path)));
  assert.deepEqual(missing, []);
});

Deno.test("every promise names a file that tests it", () => {
  const promises = page.split("## What is not promised")[0]!.split(/\n- \*\*/).slice(1);
  assert(promises.length > 20);
  const bare = promises.filter((text) => !/`(?:src|tests|tools)\/[^`]+\.ts`/.test(text));
  assert.deepEqual(bare.map((text) => text.split("**")[0]), []);
});

/** The promises, as the page has them in bold. */
const promises: readonly string[] = page.split("## What is not promised")[0]!.split(/\n- \*\*/).slice(1)
  .map((text) => text.split("**")[0]!.replaceAll(/\s+/g, " ").replace(/\.$/, ""));

Deno.test("every promise is broken by a bug, of which the page says what fails", async () => {
  assert.deepEqual([...new Set(promiseBugs.map(({ promise }) => promise))], promises);
  const rows = readPage(plantedPath).text.split("\n").filter((line) => line.startsWith("| "))
    .slice(2).map((line) => line.replaceAll("\\|", "|"));
  assert.equal(rows.length, promiseBugs.length, "make proof/promises");
  for (const [at, row] of promiseBugs.entries()) {
    const { promise, bug, test } = row;
    const cells = rows[at]!.split(/ +\| +/);
    assert.deepEqual([cells[0], cells[1], cells[2]], [`| ${promise}`, bug.title, `\`${testOf(row)}\``]);
    const source = await Deno.readTextFile(join(projectRoot, bug.file));
    assert.equal(source.split(bug.from).length, 2, `${bug.file} has the text of "${bug.title}" once`);
    if (test === undefined) continue;
    const failing = /^(`+) ?(.*?) ?\1 *\|?$/.exec(cells.slice(3).join(" | "))?.[2];
    const lines = (await Deno.readTextFile(join(projectRoot, test))).split("\n").map((line) => line.trim());
    assert.ok(lines.includes(failing!), `${test} has the line ${failing}; make proof/promises`);
  }
});

Deno.test("every cluster suite that tests a promise is run", () => {
  const run = new Set(Object.keys(suites));
  const wanted = named.flatMap((path) => /^tests\/cluster\/suites\/(\w+)\.ts$/.exec(path)?.[1] ?? []);
  assert(wanted.length > 5);
  assert.deepEqual(wanted.filter((name) => !run.has(name)), []);
});

Deno.test("every file that a typical change touches exists", async () => {
  const contributing = await Deno.readTextFile(join(projectRoot, "CONTRIBUTING.md"));
  const section = contributing.split("## Ten typical changes")[1]!.split("\n## ")[0]!;
  const paths = [...section.matchAll(/`((?:src|tests|tools|deploy|docs)\/[\w/.-]+)`/g)].map(([, path]) =>
    path!
  );
  assert(paths.length > 25, `${paths.length}`);
  assert.deepEqual(paths.filter((path) => !existsSync(join(projectRoot, path))), []);
});
