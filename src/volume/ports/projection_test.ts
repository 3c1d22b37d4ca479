import assert from "node:assert/strict";
import { aHolder } from "../../../tests/fakes/records.ts";
import { attachmentOf } from "./projection.ts";

Deno.test("attachmentOf() names the node first that has held the volume longest", () => {
  const holders = [aHolder("b", { sinceSeconds: 20 }), aHolder("a", { sinceSeconds: 10 })];
  assert.deepEqual(attachmentOf({ holders }), { nodes: ["a", "b"], sinceSeconds: 10, readOnly: false });
});

Deno.test("attachmentOf() is undefined when the volume has no holder", () => {
  assert.equal(attachmentOf({ holders: [] }), undefined);
});

Deno.test("attachmentOf() says read-only only when none of the holders may write", () => {
  const reader = aHolder("a", { readOnly: true });
  const many = aHolder("b", { mode: "multi-node-reader-only" });
  assert.equal(attachmentOf({ holders: [reader, many] })?.readOnly, true);
  assert.equal(attachmentOf({ holders: [reader, aHolder("b")] })?.readOnly, false);
});
