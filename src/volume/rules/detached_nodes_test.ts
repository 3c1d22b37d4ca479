import assert from "node:assert/strict";
import { type ClusterNode, type DetachedNodeView, reasonAgainstDetached } from "./detached_nodes.ts";

const nowSeconds = 1_700_100_000;
const held = { sinceSeconds: 1_700_000_000, machine: "0a0b0c0d" };
const volumeInUse = "kubernetes.io/csi/rds.csi.srvlab.io^second/pvc-1";

function aNode(over: Partial<ClusterNode> = {}): ClusterNode {
  return {
    createdSeconds: held.sinceSeconds,
    machine: held.machine,
    isReady: true,
    heartbeatSeconds: nowSeconds - 300,
    isOutOfService: false,
    volumesInUse: ["kubernetes.io/csi/rds.csi.srvlab.io^pvc-1", "kubernetes.io/csi/other^second/pvc-1"],
    ...over,
  };
}

function aView(over: Partial<DetachedNodeView> = {}): DetachedNodeView {
  return { nodeNames: ["worker-1"], node: aNode(), isAttached: false, volumeInUse, nowSeconds, ...over };
}

Deno.test("a node has given up a volume when its kubelet, alive and the same since before, does not use it", () => {
  assert.equal(reasonAgainstDetached(held, aView()), undefined);
  assert.equal(reasonAgainstDetached({ sinceSeconds: held.sinceSeconds }, aView()), undefined);
  const unknown = aView({ node: aNode({ machine: undefined }) });
  assert.equal(reasonAgainstDetached(held, unknown), undefined, "what is not known is not compared");
});

const doubts: readonly [what: string, view: Partial<DetachedNodeView>, reason: RegExp][] = [
  ["is registered nowhere", { nodeNames: [] }, /registered on no node/],
  ["shares its id", { nodeNames: ["worker-1", "worker-2"] }, /several nodes.*worker-1, worker-2/],
  ["has no Node", { node: undefined }, /no Node of its name/],
  ["is attached", { isAttached: true }, /VolumeAttachment is not being deleted/],
  ["was registered anew", { node: aNode({ createdSeconds: held.sinceSeconds + 1 }) }, /younger/],
  ["has no age", { node: aNode({ createdSeconds: undefined }) }, /younger/],
  ["is another machine", { node: aNode({ machine: "ffffffff" }) }, /another machine/],
  ["is out of service", { node: aNode({ isOutOfService: true }) }, /out of service/],
  ["is not ready", { node: aNode({ isReady: false }) }, /not ready/],
  ["is silent", { node: aNode({ heartbeatSeconds: nowSeconds - 361 }) }, /not reported/],
  ["never reported", { node: aNode({ heartbeatSeconds: undefined }) }, /not reported/],
  ["uses the volume", { node: aNode({ volumesInUse: [volumeInUse] }) }, /uses the volume/],
];

for (const [what, view, reason] of doubts) {
  Deno.test(`a node has not provably given up a volume that ${what}`, () => {
    assert.match(reasonAgainstDetached(held, aView(view)) ?? "", reason);
  });
}

Deno.test("a node has not provably given up a volume that it held for an unknown time", () => {
  assert.match(reasonAgainstDetached({}, aView()) ?? "", /the record does not say/);
});
