import assert from "node:assert/strict";
import {
  aPublish,
  sharedBlock,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { publishVolume } from "./publish.ts";
import { maxCommentBytes, nodeDigest } from "../../volume/model/record.ts";
import type { DetachedNode } from "../../volume/ports/cluster_ports.ts";

const epoch = { counter: 3, nonce: "0123abcd" };

/** A controller on a router with a block volume that the nodes a and b hold. */
function controller(unexportGraceMs = 0) {
  const made = testController({ unexportGraceMs });
  const holders = ["a", "b"].map((nodeId) => aHolder(nodeId, { mode: "multi-node-multi-writer" }));
  made.store.put(aDisk(aRecord({ capabilities: "block/x", blankEpoch: 0, epoch, holders })));
  const calls = volumeCalls(made);
  return {
    ...made,
    ...calls,
    publish: (nodeId: string) => calls.publish(nodeId, { capability: sharedBlock }),
  };
}

const detachingNode = { kind: "leaver-unfenced", volumeId: "pvc-1", nodeId: "a", remaining: ["b"] } as const;

Deno.test("a node that leaves is reported as not fenced: in one command, and the other one's export is left as it is", async () => {
  const { store, notes, events, disk, holders, unpublish } = controller();
  const { comment, ...before } = disk();
  await unpublish("a");
  assert.deepEqual(store.calls.map(({ method }) => method), ["view", "change"]);
  const { comment: written, ...after } = disk();
  assert.notEqual(written, comment);
  assert.equal(holders(), "b");
  assert.deepEqual([after, store.bounces], [before, []]);
  assert.match(notes.join(), /the node that left is not fenced/);
  assert.deepEqual(events, [detachingNode]);
});

Deno.test("a node that leaves is not answered OK while the record still has it", async () => {
  const { store, disk, unpublish } = controller();
  const { comment } = disk();
  for (const mishap of [{ runs: false }, { refusal: "failure: no" }]) {
    store.mishap("change", mishap);
    await assert.rejects(unpublish("a"), refusal("unavailable"));
    assert.equal(disk().comment, comment);
  }
  await unpublish("a");
  assert.doesNotMatch(disk().comment, / h=a/);
});

Deno.test("a node that left is noted by its id alone where the record has no more room, and is kept in mind", async () => {
  const { store, disk, unpublish, publish } = controller();
  const { comment } = disk();
  store.put({ ...disk(), comment: comment + "n".repeat(maxCommentBytes - comment.length) });
  await unpublish("a");
  assert.match(disk().comment, / u=ca978112 /);
  await assert.rejects(publish("c"), refusal("published-elsewhere"));
});

Deno.test("a node that left is noted where the router has forgotten that it joined, as long as the cluster shows that", async () => {
  for (const over of [{}, { attached: false }, { epochCounter: 2 }, { nodeId: "c" }]) {
    const { store, deps, disk, unpublish, publish, events } = controller();
    const holders = [aHolder("b", { mode: "multi-node-multi-writer" })];
    store.put(aDisk(aRecord({ capabilities: "block/x", blankEpoch: 0, epoch, holders })));
    const attachment = {
      volumeId: "pvc-1",
      nodeId: "a",
      attached: true,
      sinceSeconds: undefined,
      epochCounter: 3,
    };
    const clusterView = new FakeClusterView();
    clusterView.attached = [{ ...attachment, ...over }];
    Object.assign(deps, { clusterView });
    const isForgotten = Object.keys(over).length === 0;
    const { comment } = disk();
    for (let time = 0; time < 2; time++) {
      await unpublish("a");
      assert.deepEqual(events, isForgotten ? [detachingNode] : []);
      assert.equal(disk().comment !== comment, isForgotten);
    }
    clusterView.attached = [];
    if (isForgotten) await assert.rejects(publish("c"), refusal("published-elsewhere"));
    else await publish("c");
  }
});

Deno.test("a third node gets in when the one that left is known to have given the volume up, now or later", async () => {
  const { store, deps, publish, disk, unpublish } = controller();
  const asked: DetachedNode[] = [];
  let reason: string | undefined;
  Object.assign(deps, {
    detachedNodes: { reasonAgainst: (node: DetachedNode) => (asked.push(node), Promise.resolve(reason)) },
  });
  await unpublish("a");
  await publish("c");
  assert.deepEqual(asked, [{
    volumeId: "pvc-1",
    nodeDigest: nodeDigest("a"),
    sinceSeconds: aHolder("a").sinceSeconds,
  }]);
  reason = "its kubelet is away";
  await unpublish("b");
  await assert.rejects(publish("a"), refusal("published-elsewhere", /its kubelet is away/));
  const before = asked.length;
  await publish("c");
  assert.equal(asked.length, before, "a node that has it already gets it");
  reason = undefined;
  const { length } = store.calls;
  await publish("a");
  assert.deepEqual(store.calls.slice(length).map(({ method }) => method), ["view", "change"]);
  assert.doesNotMatch(disk().comment, / u=/);
});

Deno.test("a change that comes late finds no comment of before, though a node has joined and left meanwhile", async () => {
  for (const isJoin of [false, true]) {
    const { store, deps, publish, disk, unpublish } = controller();
    Object.assign(deps, { detachedNodes: { reasonAgainst: () => Promise.resolve(undefined) } });
    await unpublish("b");
    store.mishap("change", { late: true, unreadable: true });
    await assert.rejects(isJoin ? publish("b") : unpublish("a"), refusal("unavailable"));
    await publish("b");
    await unpublish("b");
    const before = disk();
    store.runLate();
    assert.deepEqual(disk(), before, isJoin ? "the join" : "the unpublish");
    assert.match(before.comment, / h=a@[^, ]* /);
  }
});

Deno.test("a third node is kept out while one that left may still write, until that comes back or the epoch ends", async () => {
  const { disk, unpublish, publish } = controller();
  await unpublish("a");
  const keptOut = refusal("published-elsewhere", /third node.*node=b requested=c.*node=b gives it up/);
  await assert.rejects(publish("c"), keptOut);
  await publish("a");
  await unpublish("a");
  await assert.rejects(publish("c"), keptOut);
  const before = disk().exportNqn;
  await unpublish("b");
  await publish("c");
  assert.notEqual(disk().exportNqn, before);
  await publish("b");
  assert.equal(disk().exported, true, "a new epoch knows of none that left");
});

Deno.test("a machine that cannot be told does not come back in the place of one that left and may still write", async () => {
  const { deps, disk, unpublish, publish } = controller();
  let machine: string | undefined = "0a0b0c0d";
  Object.assign(deps, {
    nodes: { isKnown: () => Promise.resolve(true), machineOf: () => Promise.resolve(machine) },
  });
  await unpublish("a");
  await publish("a");
  await unpublish("a");
  assert.match(disk().comment, / u=ca978112@[0-9a-z]+\/0a0b0c0d /);
  for (machine of [undefined, "ffffffff"]) {
    await assert.rejects(publish("a"), refusal("published-elsewhere", /could not be shut out/), machine);
  }
  machine = "0a0b0c0d";
  await publish("a");
  assert.doesNotMatch(disk().comment, / u=/);
});

Deno.test("that a kubelet says it has given a volume up shortens no grace", async () => {
  const { deps, clock, unpublish } = controller(10_000);
  Object.assign(deps, { detachedNodes: { reasonAgainst: () => Promise.resolve(undefined) } });
  for (const nodeId of ["a", "b"]) await unpublish(nodeId);
  const soon = testContext({ deadlineMs: clock.now() + 9_000 });
  const request = aPublish("c", { capability: sharedBlock });
  await assert.rejects(
    publishVolume(deps, "pvc-1", request, testParameters, soon),
    refusal("unavailable", /withdrawn only a moment ago/),
  );
});
