import assert from "node:assert/strict";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import type { HardwareFinding } from "../../volume/model/hardware.ts";
import { ReconcileLoop } from "./loop.ts";

const minute = 60_000;
const fault: HardwareFinding = {
  ...{ reason: "MemberFailed", severity: "critical", slot: "nvme1", pools: ["pool"] },
  message: "nvme1 has failed",
};

Deno.test("the fault of a drive is told of 50 volumes in use, once each, and so is its end", async () => {
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
  clock.timer(30 * minute, () => deps.hardware.keep([]));
  const reconcile = { mode: "off", graceMs: 10 * minute } as const;
  const stop = new AbortController();
  const over = new ReconcileLoop(deps, cluster, { intervalMs: minute, reconcile, namesOnRouter: false }).run(
    stop.signal,
  );
  await clock.advance(50 * minute);
  stop.abort(new Error("stopped"));
  await over;
  const told = events.flatMap((event) => event.kind === "health" ? [event] : []);
  const begun = told.filter(({ problems }) => problems.length > 0);
  assert.equal(begun.length, 50);
  assert.equal(new Set(begun.map(({ volumeId }) => volumeId)).size, 50);
  assert.ok(begun.every(({ volumeId }) => volumeId !== "pvc-099"), "one that nobody uses");
  assert.deepEqual(begun[0]!.problems.map(({ status, reason, message }) => [status, reason, message]), [
    ["DEGRADED", "PoolDegraded", "nvme1 has failed"],
  ]);
  assert.equal(told.length, 100);
});
