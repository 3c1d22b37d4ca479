import assert from "node:assert/strict";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, subvolumeImage } from "../../../tests/fakes/records.ts";
import type { HardwareFinding } from "../../volume/model/health/hardware.ts";
import { ReconcileLoop } from "./loop.ts";

const minute = 60_000;
const fault: HardwareFinding = {
  ...{ reason: "MemberFailed", severity: "critical", slot: "nvme1", pools: ["pool"] },
  message: "nvme1 has failed",
};

/** Volumes on a pool with a drive that has failed, and what is told of them. */
function scene() {
  const { deps, store, clock, events } = testController();
  const cluster = new FakeClusterView();
  for (let number = 100; number < 160; number++) {
    const id = `pvc-${number}`;
    const epoch = { counter: 4, nonce: "0a0b0c0d" };
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] }), { id }));
    cluster.attach(id, "node-1");
  }
  store.put(aDisk(aRecord(), { id: "pvc-099" }));
  deps.hardware.keep([fault]);
  const reconcile = { mode: "off", graceMs: 10 * minute } as const;
  const settings = { intervalMs: minute, reconcile, namesOnRouter: false };
  const stop = new AbortController();
  const over = new ReconcileLoop(deps, cluster, settings).run(stop.signal);
  return {
    ...{ hardware: deps.hardware, store },
    /** Goes on for so long, and returns what was told until then. */
    async after(minutes: number) {
      await clock.advance(minutes * minute);
      return events.flatMap((event) => event.kind === "health" ? [event] : []);
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("stopped"));
      await over;
    },
  };
}

Deno.test("the fault of a drive is told of 50 volumes in use, once each, and so is its end", async () => {
  await using at = scene();
  const begun = await at.after(30);
  assert.equal(begun.length, 50);
  assert.equal(new Set(begun.map(({ volumeId }) => volumeId)).size, 50);
  assert.ok(begun.every(({ volumeId }) => volumeId !== "pvc-099"), "one that nobody uses");
  assert.deepEqual(begun[0]!.problems.map(({ status, reason, message }) => [status, reason, message]), [
    ["DEGRADED", "PoolDegraded", "nvme1 has failed"],
  ]);
  at.hardware.keep([]);
  const told = await at.after(20);
  assert.equal(told.filter(({ problems }) => problems.length === 0).length, 50);
  assert.equal(told.length, 100);
});

Deno.test("no volume is told to be well again because drives cannot be read any more", async () => {
  await using at = scene();
  assert.equal((await at.after(180)).length, 50);
  at.hardware.keep([]);
  assert.equal((await at.after(20)).length, 100);
});

Deno.test("the end of another problem is told while drives are unknown, and no end of theirs", async () => {
  await using at = scene();
  // One in use above the drive, and one of which nobody was told that there is a drive below it.
  for (const id of ["pvc-100", "pvc-099"]) at.store.edit(id, { mayBeMounted: true });
  const reasonsOf = async (minutes: number, id: string) =>
    (await at.after(minutes)).filter(({ volumeId }) => volumeId === id)
      .map(({ problems }) => problems.map(({ reason }) => reason).join());
  assert.deepEqual(await reasonsOf(30, "pvc-100"), ["MayBeMounted,PoolDegraded"]);
  await at.after(150);
  assert.ok(!at.hardware.isKnown);
  for (const id of ["pvc-100", "pvc-099"]) {
    const { mayBeMounted: _, ...mended } = at.store.disks.get(id)!;
    at.store.put(mended);
  }
  assert.deepEqual(await reasonsOf(10, "pvc-099"), ["MayBeMounted", ""]);
  assert.deepEqual(await reasonsOf(0, "pvc-100"), ["MayBeMounted,PoolDegraded", "PoolDegraded"]);
  at.store.edit("pvc-100", { mayBeMounted: true });
  assert.equal((await reasonsOf(10, "pvc-100")).at(-1), "MayBeMounted,PoolDegraded");
  at.store.disks.delete("pvc-101");
  at.store.allFiles.delete(subvolumeImage("pvc-101"));
  assert.equal((await reasonsOf(10, "pvc-101")).at(-1), "", "a volume that is gone");
  at.hardware.keep([]);
  assert.equal((await reasonsOf(10, "pvc-100")).at(-1), "MayBeMounted");
});
