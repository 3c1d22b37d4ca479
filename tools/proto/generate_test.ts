import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findDifferences } from "./generate.ts";
import { makeScratch } from "../../tests/support/scratch.ts";

const SCRIPT = fileURLToPath(new URL("generate.ts", import.meta.url));
const LIMIT_MS = 60_000;
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

Deno.test("findDifferences() names what is missing, different and left over, and nothing else", () => {
  const expected = new Map([["same.ts", "1"], ["changed.ts", "2"], ["gone.ts", "3"]]);
  const actual = new Map([["same.ts", "1"], ["changed.ts", "x"], ["old.ts", "4"]]);
  assert.deepEqual(findDifferences(expected, actual), [
    "changed.ts differs",
    "gone.ts is missing",
    "old.ts is left over",
  ]);
});

Deno.test("generate.ts makes a folder that --check accepts until one of its files changes", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  assert.equal((await generate(folder)).code, 0);
  assert.equal((await generate("--check", folder)).code, 0);

  await Deno.writeTextFile(join(folder, "secrets.ts"), "// stale\n");
  await Deno.remove(join(folder, "csi.ts"));
  await Deno.mkdir(join(folder, "csi"));
  await Deno.writeTextFile(join(folder, "csi/Leftover.ts"), "");
  const { code, stdout } = await generate("--check", folder);
  assert.equal(code, 1);
  const named = stdout.split("\n").filter((line) => line.startsWith("  "));
  assert.deepEqual(named, [
    "  src/csi/generated/csi.ts is missing",
    "  src/csi/generated/csi/Leftover.ts is left over",
    "  src/csi/generated/secrets.ts differs",
  ]);
});

async function generate(...args: string[]): Promise<{ code: number; stdout: string }> {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", SCRIPT, ...args],
    cwd: ROOT,
    stderr: "inherit",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  return { code, stdout: new TextDecoder().decode(stdout) };
}
