import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { assertNotUsedByRouter, isToBeKeptUnmounted } from "./router_uses.ts";

const disk = aDisk(aRecord());

Deno.test("assertNotUsedByRouter() throws precondition with the command that ends the uses", () => {
  const refuses = (routerUses: readonly string[], text: RegExp) =>
    assert.throws(
      () => assertNotUsedByRouter({ ...disk, routerUses }, "publish"),
      refusal("precondition", text),
    );
  refuses(["it is shared over NFS", "it is encrypted"], /NFS, .*: .*slot="pvc-1"\] nfs-sharing=no$/);
  assertNotUsedByRouter(disk, "publish");
  // Whoever removes the partition's entry instead removes the workload's partition.
  const partition = "a disk is on it: disk=pvc-1-part1";
  const unmount = '/disk set [find slot="pvc-1-part1"] mount-filesystem=no';
  refuses([partition], new RegExp(`first: ${RegExp.escape(unmount)}$`));
  refuses([partition, "it is swap space"], new RegExp(`first: .*swap=no; ${RegExp.escape(unmount)}$`));
  refuses(['a disk is on it: disk=a"b'], /end that first$/);
});

Deno.test("isToBeKeptUnmounted() is true of a free disk that the router may mount, and of no other", () => {
  const free = { ...disk, mayBeMounted: true } as const;
  const others = [disk, { ...free, exported: true }, { ...free, routerUses: ["x"] }];
  assert.deepEqual([free, ...others].map(isToBeKeptUnmounted), [true, false, false, false]);
});
