import assert from "node:assert/strict";
import { sharedBlock, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import type { NodeAttachment } from "../../volume/ports/cluster_view.ts";
import type { ControllerDeps } from "../deps.ts";
import type { MigrationPairs } from "../../volume/ports/cluster_ports.ts";

/** A shared block volume that these nodes hold, and pairs of which `reason` is said. */
function scene(reason: string | undefined, nodes: readonly string[] = ["a"]) {
  const made = testController();
  const { store, deps, events } = made;
  const holders = nodes.map((node) => aHolder(node, { mode: "multi-node-multi-writer" }));
  const epoch = { counter: 1, nonce: "0a0b0c0d" };
  store.put(aDisk(aRecord({ capabilities: "block/x", blankEpoch: 0, epoch, holders })));
  const asked: unknown[] = [];
  const pairs: MigrationPairs = {
    reasonAgainst: ({ volumeId, nodeId, holders }) => {
      asked.push([volumeId, nodeId, ...holders.map((holder) => holder.nodeId)]);
      return Promise.resolve(reason);
    },
  };
  const publish = (nodeId: string, over: ControllerDeps = deps) =>
    volumeCalls({ ...made, deps: { ...over, pairs } }).publish(nodeId, { capability: sharedBlock });
  return { store, deps, events, asked, publish };
}

Deno.test("a second node gets a volume only when the two are a pair, and is told why they are not", async () => {
  const { store, events, publish } = scene("no pod uses its claim");
  const before = store.disks.get("pvc-1");
  await assert.rejects(publish("b"), {
    kind: "published-elsewhere",
    message: /node=a requested=b: no pod uses its claim/,
  });
  assert.deepEqual(store.disks.get("pvc-1"), before);
  assert.deepEqual(events.map(({ kind }) => kind), ["attach-refused"]);
});

Deno.test("nobody asks about pairs for the first node, nor for one that has the volume", async () => {
  const { asked, publish } = scene("none of that is a pair");
  await publish("a");
  assert.deepEqual(asked, []);
  const pair = scene(undefined);
  await pair.publish("b");
  await pair.publish("b");
  assert.deepEqual(pair.asked, [["pvc-1", "b", "a"]]);
});

/** A router whose earlier record is back: it names node a, and the cluster has attached the volume to b, in that epoch, too. */
function restored(change: Partial<NodeAttachment> = {}, nodes?: readonly string[]) {
  const { store, deps, publish } = scene(undefined, nodes);
  const clusterView = new FakeClusterView();
  const attached = { volumeId: "pvc-1", attached: true, sinceSeconds: undefined, epochCounter: 1 };
  clusterView.attached = [{ ...attached, nodeId: "a" }, { ...attached, nodeId: "b", ...change }];
  return { store, clusterView, publish: (nodeId: string) => publish(nodeId, { ...deps, clusterView }) };
}

Deno.test("a third node gets no volume that the cluster shows on another one than the router's record names", async () => {
  const { store, publish } = restored();
  const before = store.disks.get("pvc-1");
  // Whatever was asked of the cluster before: the one that has the volume, and whoever leaves, ask for its latest epoch.
  await publish("a");
  for (let tries = 0; tries < 2; tries++) {
    await assert.rejects(publish("c"), {
      kind: "published-elsewhere",
      message: /node=b is attached, and the record names node=a requested=/,
    });
  }
  assert.deepEqual(store.disks.get("pvc-1"), before);
});

Deno.test("a node that has left gets no volume by a restored record that names it, and lacks one that has the volume now", async () => {
  for (const holders of [["c"], ["a", "c"]]) {
    const { store, publish } = restored({}, holders);
    const before = store.disks.get("pvc-1");
    await assert.rejects(publish("c"), { kind: "published-elsewhere", message: /node=[ab] is attached/ });
    assert.deepEqual(store.disks.get("pvc-1"), before);
  }
});

Deno.test("a node joins the holder of a restored record where it is the one that the cluster shows, or the other is of no count", async () => {
  await restored().publish("b");
  for (const other of [{ attached: false }, { epochCounter: 0 }, { volumeId: "pvc-2" }]) {
    await restored(other).publish("c");
  }
});

Deno.test("nobody joins the holder of a volume while the cluster does not answer", async () => {
  const { clusterView, publish } = restored();
  clusterView.readable = false;
  await assert.rejects(publish("c"), { kind: "unavailable" });
});
