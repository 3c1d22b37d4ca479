import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import plugin from "./verify_plugin.ts";

function problems(path: string, source: string): number {
  const filename = fileURLToPath(new URL(`../${path}`, import.meta.url));
  return Deno.lint.runPlugin(plugin, filename, source).length;
}

Deno.test("only one file may write to the store, whatever the store is called", () => {
  const writes = [
    "await call.store.commit(write, [], context);",
    "await router.commit(write, [], context);",
    'await store["commit"](write, [], context);',
    "const { commit: write } = call.store;",
  ];
  for (const source of writes) {
    assert.equal(problems("src/controller/volumes/delete.ts", source), 1);
    assert.equal(problems("src/cli/fix.ts", source), 1);
    assert.equal(problems("src/controller/records/commit.ts", source), 0);
    assert.equal(problems("src/controller/volumes/delete_test.ts", source), 0);
  }
  assert.equal(problems("src/controller/volumes/delete.ts", "await commit(call, disk, write);"), 0);
});

Deno.test("only one file of the controller may send a change", () => {
  const sends = "await adding(addition, finish).send(call, verb, view);";
  assert.equal(problems("src/controller/volumes/create.ts", sends), 1);
  assert.equal(problems("src/controller/records/loop.ts", sends), 0);
  assert.equal(problems("src/controller/volumes/create_test.ts", sends), 0);
  assert.equal(problems("src/controller/volumes/create.ts", "return adding(addition, finish);"), 0);
});
