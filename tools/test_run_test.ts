import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeScratch } from "../tests/support/scratch.ts";

const RUNNER = fileURLToPath(new URL("test_run.ts", import.meta.url));
const LIMIT_MS = 60_000;

/** Runs the runner with one test file of this text. */
async function run(text: string, ...flags: string[]) {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  await Deno.writeTextFile(join(folder, "a_test.ts"), text);
  const countsFile = join(folder, "counts");
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", RUNNER, ...flags, "suite", folder],
    env: { COUNTS_FILE: countsFile, SLOWEST: "1" },
    stderr: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  const counts = await Deno.readTextFile(countsFile);
  return { code, counts, lines: new TextDecoder().decode(stdout).trimEnd().split("\n") };
}

const SKIPPED = `console.error("ignored: no kettle here");
Deno.test("runs", () => {});
Deno.test({ name: "boils", ignore: true, fn() {} });`;

Deno.test("test_run.ts counts skipped tests, gives their reason, names the slowest, and succeeds", async () => {
  const { code, counts, lines } = await run(SKIPPED);
  assert.equal(code, 0);
  assert.equal(counts, "suite 1 0 1\n");
  assert.equal(lines.at(-1), "1 passed, 0 failed, 1 skipped");
  assert.ok(lines.some((line) => /1 of .*a_test\.ts$/.test(line)), lines.join("\n"));
  assert.ok(lines.some((line) => /^ +\d+\.\d s .*a_test\.ts: \w+$/.test(line)), lines.join("\n"));
  assert.ok(lines.includes("  no kettle here"), lines.join("\n"));
});

Deno.test("test_run.ts --no-skips fails when a test was skipped", async () => {
  assert.equal((await run(SKIPPED, "--no-skips")).code, 1);
});

Deno.test("test_run.ts shows why a test failed, and fails", async () => {
  const { code, lines } = await run(`Deno.test("breaks", () => { throw new Error("boom"); });`);
  assert.equal(code, 1);
  assert.equal(lines.at(-1), "0 passed, 1 failed, 0 skipped");
  assert.ok(lines.some((line) => line.includes("boom")), lines.join("\n"));
});

Deno.test("test_run.ts counts a file that does not compile as a failure", async () => {
  const { code, counts } = await run(`Deno.test("a", () => {}); const a = ;`);
  assert.equal(code, 1);
  assert.equal(counts, "suite 0 1 0\n");
});
