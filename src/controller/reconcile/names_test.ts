import assert from "node:assert/strict";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import { ReconcileLoop } from "./loop.ts";

const epoch = { counter: 4, nonce: "0a0b0c0d" };

/** A volume with a claim, which a node has if its record says so. */
function scene(namesOnRouter: boolean, record: Partial<VolumeRecord>) {
  const controller = testController();
  const { store, clock, deps } = controller;
  store.put(aDisk(aRecord(record)));
  store.putFile("/pool/csi", 0n, true);
  const cluster = new FakeClusterView();
  cluster.named = [{ id: "pvc-1", namespace: "default", name: "photos", className: "" }];
  for (const { nodeId } of record.holders ?? []) cluster.attach("pvc-1", nodeId);
  const settings = {
    intervalMs: 60_000,
    reconcile: { mode: "on", graceMs: 600_000 },
    namesOnRouter,
  } as const;
  return {
    ...controller,
    /** Lets the loops run for a while. */
    async run(ms: number) {
      const stop = new AbortController();
      const over = new ReconcileLoop(deps, cluster, settings).run(stop.signal);
      await clock.advance(ms);
      stop.abort(new Error("stopped"));
      await over;
    },
  };
}

Deno.test("the names on the router are looked at in every tenth round, and once if they are not wanted", async () => {
  for (const namesOnRouter of [true, false]) {
    const { store, run } = scene(namesOnRouter, {});
    await run(20 * 60_000);
    const looks = store.calls.filter(({ method, id }) => method === "files" && id.startsWith("names-of-"));
    const changes = store.calls.filter(({ method }) => method === "changeFolders");
    assert.deepEqual([looks.length, changes.length], namesOnRouter ? [3, 1] : [1, 0]);
  }
});

Deno.test("a round goes on when the names cannot be kept on the router", async () => {
  const { store, notes, events, run } = scene(true, { epoch, holders: [aHolder("node-1")] });
  store.mishap("changeFolders", { refusal: "failure: no" });
  store.edit("pvc-1", { exported: false });
  await run(0);
  assert.deepEqual(notes, ["cannot keep the name plates on the router; retrying"]);
  assert.deepEqual(events.map(({ kind }) => kind), ["export-restored"]);
});

/** Lets the router take an hour to list names. Returns how often it was asked so far. */
function slowNames({ store, clock }: ReturnType<typeof scene>): () => number {
  const files = store.files.bind(store);
  let asked = 0;
  store.files = async (part, context) => {
    if (part.startsWith("names-of-")) {
      asked++;
      await clock.sleep(3_600_000, context.signal);
    }
    return await files(part, context);
  };
  return () => asked;
}

Deno.test("a router that is slow with the names delays no round", async () => {
  const slow = scene(true, { epoch, holders: [aHolder("node-1")] });
  const { store, notes, events, clock, run } = slow;
  const asked = slowNames(slow);
  const over = run(20 * 60_000);
  await clock.advance(0);
  assert.equal(asked(), 1);
  store.edit("pvc-1", { exported: false });
  await clock.advance(60_000);
  assert.deepEqual(events.map(({ kind }) => kind), ["export-restored"]);
  await over;
  assert.deepEqual(notes, ["cannot keep the name plates on the router; retrying"]);
  assert.equal(asked(), 3);
});

Deno.test("the names end with the loop, however long the router takes", async () => {
  const slow = scene(true, {});
  slowNames(slow);
  await slow.run(1_000);
  assert.deepEqual(slow.notes, []);
});
