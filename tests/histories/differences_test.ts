import assert from "node:assert/strict";
import { differences } from "./differences.ts";

Deno.test("differences() names the first call of each schedule that is answered otherwise", () => {
  const before = [["create a: OK", "publish a n1: OK"], ["create a: OK", "publish a n1: OK", "delete a: OK"]];
  const after = [["create a: OK", "publish a n1: OK"], [
    "create a: OK",
    "publish a n1: busy",
    "delete a: busy",
  ]];
  assert.deepEqual(differences(before, after, 5), [
    { seed: 6, call: 2, before: "publish: OK", after: "publish: busy" },
  ]);
});

Deno.test("differences() counts a call that only one tree has", () => {
  assert.deepEqual(differences([["create a: OK"]], [[]], 1), [
    { seed: 1, call: 1, before: "create: OK", after: "no call" },
  ]);
  assert.deepEqual(differences([[]], [["create a: OK"]], 1), [
    { seed: 1, call: 1, before: "no call", after: "create: OK" },
  ]);
});
