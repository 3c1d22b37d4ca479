import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import plugin from "./verify_words.ts";

/** The names that the rule reports in a source at `path`. */
function reported(path: string, source: string): string[] {
  const filename = fileURLToPath(new URL(`../${path}`, import.meta.url));
  return Deno.lint.runPlugin(plugin, filename, source)
    .map(({ message }) => message.split(": say ")[0]!);
}

const CASES: readonly [what: string, path: string, source: string, expected: readonly string[]][] = [
  ["a file", "src/node/unsettled.ts", "", ["src/node/unsettled"]],
  ["a type", "src/a.ts", "interface NodeWorld { readonly size: bigint }", ["NodeWorld"]],
  ["a member", "src/a.ts", "class A { #letGo = 1; lookForChange() { return this.#letGo; } }", [
    "letGo",
    "lookForChange",
  ]],
  ["a log", "src/a.ts", `log.info("a stash is there", { strayedNodes: 1 });`, ["stash", "strayedNodes"]],
  ["a metric", "src/a.ts", `const a = { name: "rds_csi_stashes", help: "Verdicts." };`, [
    ["rds", "csi", "stashes"].join("_"), // As a literal it would be a name itself.
    "verdicts",
  ]],
  ["a test", "src/a_test.ts", `nodeTest("a stranger is refused", () => {});`, ["stranger"]],
  ["a comment", "src/a.ts", "// A stash of the store.\n/** `stash` is the old key. */\nconst a = 1;", [
    "stash",
  ]],
  ["a sentence", "src/a.ts", 'const a = ["a verdict", `an odd ${1} quirk`];', ["verdict", "quirk"]],
  ["a key that is no sentence", "src/a.ts", 'const a = "leaver-unfenced";', []],
  ["English", "src/a.ts", "const place = 1, maxBytes = 2, looks = 3, turnsLeft = 4, discourse = 5;", []],
];

for (const [what, path, source, expected] of CASES) {
  Deno.test(`make verify/words finds forbidden words: ${what}`, () => {
    assert.deepEqual(reported(path, source).toSorted(), expected.toSorted());
  });
}
