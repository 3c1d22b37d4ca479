import assert from "node:assert/strict";
import { withoutMachine } from "./bundle_names.ts";

const entry = "main.js";

function bundled(folder: string, shared: string, lazy: string): Map<string, string> {
  return new Map([
    [lazy, `import { a } from "./${shared}";\n// ${folder}left-pad/1.0.0/index.js\nb(a);`],
    [shared, `// ${folder}left-pad/1.0.0/pad.js\nexport const a = "./not-a-file.js";`],
    [entry, `import { a } from "./${shared}";\nawait import("./${lazy}");`],
  ]);
}

Deno.test("withoutMachine() gives the same files for a bundle of other folders and other names", () => {
  const one = withoutMachine(
    bundled("../../cache/npm/", "chunk-QX.js", "attach-AA.js"),
    entry,
    "../../cache/npm/",
  );
  const other = withoutMachine(bundled("../c/", "chunk-01.js", "attach-ZZ.js"), entry, "../c/");
  assert.deepEqual([...one], [...other]);
  assert.deepEqual([...one.keys()], ["main.js", "part1.js", "part2.js"]);
  assert.equal(one.get("main.js"), 'import { a } from "./part1.js";\nawait import("./part2.js");');
  assert.equal(one.get("part2.js"), 'import { a } from "./part1.js";\n// npm:left-pad/1.0.0/index.js\nb(a);');
  assert.match(one.get("part1.js")!, /"\.\/not-a-file\.js"/);
});

Deno.test("withoutMachine() refuses a bundle that lacks its first file, or has one that no other refers to", () => {
  assert.throws(() => withoutMachine(new Map([["a.js", ""]]), entry, "x/"), /lacks main\.js/);
  const alone = new Map([[entry, ""], ["alone.js", ""]]);
  assert.throws(() => withoutMachine(alone, entry, "x/"), /Nothing .* leads to alone\.js/);
});
