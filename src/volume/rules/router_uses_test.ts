import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { assertNotUsedByRouter, isToBeKeptUnmounted } from "./router_uses.ts";

const disk = aDisk(aRecord());

Deno.test("assertNotUsedByRouter() throws precondition with the command that ends the uses", () => {
  const routerUses = ["it is shared over NFS", "a disk is on it"];
  assert.throws(
    () => assertNotUsedByRouter({ ...disk, routerUses }, "publish"),
    refusal("precondition", /shared over NFS, a disk is on it: .*slot="pvc-1"\] nfs-sharing=no/),
  );
  assertNotUsedByRouter(disk, "publish");
});

Deno.test("isToBeKeptUnmounted() is true of a free disk that the router may mount, and of no other", () => {
  const free = { ...disk, mayBeMounted: true } as const;
  const others = [disk, { ...free, exported: true }, { ...free, routerUses: ["x"] }];
  assert.deepEqual([free, ...others].map(isToBeKeptUnmounted), [true, false, false, false]);
});
