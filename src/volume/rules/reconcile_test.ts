import assert from "node:assert/strict";
import { aHolder, aVolume } from "../../../tests/fakes/records.ts";
import { parsePublishedExport } from "../model/parse_context.ts";
import type { ClusterAttachment } from "../ports/cluster_view.ts";
import type { OwnedVolume } from "../model/record.ts";
import {
  isStillUnwanted,
  isStillUnwantedOn,
  reconcile,
  type ReconcileView,
  servedCounter,
  type Unwanted,
} from "./reconcile.ts";

const rules = { graceMs: 600_000, maxWithdrawals: 3 };
const nowMs = 1_800_000_000_000;
const epoch = { counter: 4, nonce: "0a0b0c0d" };
const held = (id: string, over: Parameters<typeof aVolume>[1] = {}, sinceSeconds?: number) => {
  const holder = sinceSeconds === undefined ? aHolder("n") : aHolder("n", { sinceSeconds });
  return aVolume({ epoch, holders: [holder] }, { id, ...over });
};
const attachment = (
  volumeId: string | undefined,
  over: Partial<ClusterAttachment> = {},
): ClusterAttachment => ({
  ...{
    volumeId,
    nodeName: "n",
    attached: true,
    deleting: false,
    published: parsePublishedExport({ epoch: "4-0a0b0c0d" }),
  },
  ...over,
});

function pass(
  volumes: readonly OwnedVolume[],
  attachments: readonly ClusterAttachment[],
  over: Partial<ReconcileView> = {},
) {
  const since = new Map(volumes.map(({ stored }) => [stored.id, 0]));
  const view = {
    volumes,
    attachments,
    unwantedSinceMs: since,
    nowMs,
    monotonicMs: 1_000_000,
    isNamed: () => true,
    isGivenUp: () => false,
    settled: true,
  };
  const { steps, ...rest } = reconcile({ ...view, ...over }, rules);
  return { ...rest, steps: steps.map(({ action, volume }) => `${action} ${volume.stored.id}`) };
}

Deno.test("reconcile() does nothing where router and cluster agree", () => {
  assert.deepEqual(pass([held("a"), aVolume({}, { id: "b" })], [attachment("a")]).steps, []);
});

Deno.test("reconcile() leaves a disk alone that a person gave the slot of another volume", () => {
  const { imagePath } = held("b").stored;
  const later = attachment("a", { published: parsePublishedExport({ epoch: "9-0a0b0c0d" }) });
  for (const attachments of [[], [attachment("a")], [later]]) {
    for (const over of [{}, { exported: false }]) {
      assert.deepEqual(pass([held("a", { imagePath, ...over })], attachments).steps, []);
    }
  }
});

const off = { exported: false };
const renamed = { exportNqn: "nqn.2000-02.com.mikrotik:somebody-else" };
const restored: readonly (readonly [what: string, OwnedVolume, ClusterAttachment, steps: string[]])[] = [
  ["the export is off", held("a", off), attachment("a"), ["restore a"]],
  ["the NQN is another one", held("a", renamed), attachment("a"), ["restore a"]],
  ["the node's name is not its id", held("a", off), attachment("a", { nodeName: "x" }), ["restore a"]],
  [
    "the attachment is of the same node, and says no epoch",
    held("a", off),
    attachment("a", { published: {} }),
    ["restore a"],
  ],
  ["the attachment is going away", held("a", off), attachment("a", { deleting: true }), []],
  ["it is not attached yet", held("a", off), attachment("a", { attached: false }), []],
  ["nobody holds it", aVolume({ epoch }, { id: "a", exported: false }), attachment("a"), []],
];
for (const [what, volume, one, steps] of restored) {
  Deno.test(`reconcile() ${steps.length > 0 ? "restores" : "never publishes"} a volume when ${what}`, () => {
    assert.deepEqual(pass([volume], [one]).steps, steps);
  });
}

Deno.test("reconcile() withdraws a volume that is wanted nowhere, held or not, the longest unwanted first", () => {
  const exported = aVolume({ epoch }, { id: "b", exported: true });
  const volumes = [held("a"), exported, held("c"), held("d")];
  const since = new Map([["a", 300_000], ["b", 100_000], ["c", 200_000]]);
  const { steps, unwantedSinceMs } = pass(volumes, [attachment("d")], { unwantedSinceMs: since });
  assert.deepEqual(steps, ["withdraw b", "withdraw c", "withdraw a"]);
  assert.deepEqual([...unwantedSinceMs.keys()], ["a", "b", "c"]);
});

Deno.test("reconcile() waits until a volume is unwanted, and held, for the whole grace period", () => {
  const young = Math.floor(nowMs / 1000) - 599;
  for (const since of [young, nowMs / 1000]) assert.deepEqual(pass([held("a", {}, since)], []).steps, []);
  const first = pass([held("a")], [], { unwantedSinceMs: new Map() });
  assert.deepEqual(first.steps, []);
  const { unwantedSinceMs } = first;
  assert.deepEqual(pass([held("a")], [], { unwantedSinceMs, monotonicMs: 1_599_999 }).steps, []);
  assert.deepEqual(pass([held("a")], [], { unwantedSinceMs, monotonicMs: 1_600_000 }).steps, ["withdraw a"]);
});

Deno.test("reconcile() goes by how long a volume is unwanted where its holder came at a time that is yet to come", () => {
  const later = nowMs / 1000 + 3_600;
  assert.deepEqual(pass([held("a", {}, later)], []).steps, ["withdraw a"]);
  const unseen = { unwantedSinceMs: new Map() };
  assert.deepEqual(pass([held("a", {}, later)], [], unseen).steps, []);
});

Deno.test("reconcile() starts the grace period again when a volume was wanted in between", () => {
  const { unwantedSinceMs } = pass([held("a")], [attachment("a", { deleting: true })]);
  assert.equal(unwantedSinceMs.size, 0);
});

Deno.test("reconcile() withdraws at most a few in a round", () => {
  const unwanted = ["a", "b", "c", "d"].map((id) => held(id));
  const wanted = ["e", "f", "g", "h", "i"].map((id) => held(id));
  const attachments = wanted.map(({ stored }) => attachment(stored.id));
  assert.equal(pass([...unwanted, ...wanted], attachments).steps.length, 3);
});

const doubts: readonly (readonly [what: string, ClusterAttachment[], Partial<ReconcileView>])[] = [
  ["most volumes are unwanted at once", [], {}],
  ["the cluster has no object of them", ["b", "c", "d", "e", "f"].map((id) => attachment(id)), {
    isNamed: (id) => id !== "a",
  }],
  ["it cannot be told what an attachment is about", [attachment(undefined), attachment("f")], {}],
  ["the router has just booted", ["b", "c", "d", "e", "f"].map((id) => attachment(id)), { settled: false }],
];
for (const [what, attachments, over] of doubts) {
  Deno.test(`reconcile() withdraws nothing when ${what}, and says so`, () => {
    const volumes = ["a", "b", "c", "d", "e", "f"].map((id) => held(id));
    const { steps, heldBack, heldBackReason } = pass(volumes, attachments, over);
    assert.deepEqual(steps, []);
    assert.ok(heldBack.length > 0);
    assert.match(heldBackReason ?? "", /./);
  });
}

const waitsOn = (id: string) =>
  attachment(id, { nodeName: "x", nodeId: "x", attached: false, published: {} });

Deno.test("reconcile() withdraws what its node has given up and another one waits for, whatever else is unwanted", () => {
  const all = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const volumes = all.map((id) => held(id));
  const attachments = [...["a", "b", "c", "d"].map(waitsOn), attachment("h", { deleting: true })];
  const first = pass(volumes, attachments);
  assert.deepEqual(first.steps, []);
  assert.deepEqual(first.heldBack.length, 7);
  assert.deepEqual(first.mayBeGivenUp.map(({ volume }) => volume.stored.id), ["a", "b", "c", "d"]);
  const given = (ids: string[]) => ({ isGivenUp: ({ volume }: Unwanted) => ids.includes(volume.stored.id) });
  const second = pass(volumes, attachments, given(["b", "d"]));
  assert.deepEqual(second.steps, ["withdraw b", "withdraw d"]);
  assert.equal(second.heldBack.length, 5);
  assert.match(second.heldBackReason ?? "", /restored from an old backup, or its router may have lost/);
  // Three are few, as before.
  const third = pass(volumes, attachments, given(["a", "b", "c", "d"]));
  assert.deepEqual([third.steps.length, third.heldBack, third.mayBeGivenUp], [3, [], []]);
});

Deno.test("reconcile() takes nothing for given up that is unwanted for another reason, or that is in doubt", () => {
  const volumes = ["a", "b", "c", "d"].map((id) => held(id));
  const isGivenUp = () => true;
  const detaching = attachment("a", { nodeName: "x", nodeId: "x", attached: false, deleting: true });
  assert.deepEqual(pass(volumes, [detaching]).mayBeGivenUp, []);
  assert.deepEqual(pass(volumes, []).mayBeGivenUp, []);
  for (const over of [{ settled: false }, { isNamed: () => false }]) {
    const { steps, heldBack, mayBeGivenUp } = pass(volumes, volumes.map(({ stored }) => waitsOn(stored.id)), {
      ...over,
      isGivenUp,
    });
    assert.deepEqual([steps, heldBack.length, mayBeGivenUp], [[], 4, []]);
  }
  const unknown = pass(volumes, [attachment(undefined), waitsOn("a")], { isGivenUp });
  assert.deepEqual([unknown.steps, unknown.mayBeGivenUp], [[], []]);
});

Deno.test("reconcile() never restores a volume of which the cluster knows a later epoch", () => {
  const later = attachment("a", { published: parsePublishedExport({ epoch: "5-ffffffff" }) });
  assert.deepEqual(pass([held("a")], [later]).steps, ["older-epoch a"]);
  assert.deepEqual(pass([held("a", off)], [later]).steps, ["older-epoch a"]);
  assert.deepEqual(pass([aVolume({ epoch }, { id: "a", ...off })], [later]).steps, ["older-epoch a"]);
});

Deno.test("reconcile() lets nobody reach an epoch by hand that is earlier than an attachment's", () => {
  const exported = { id: "a", exported: true, exportNqn: "nqn.2000-02.com.mikrotik:a:3-0a0b0c0d" };
  const known = [attachment("a")];
  assert.deepEqual(pass([aVolume({ epoch }, exported)], known).steps, ["older-epoch a"]);
  assert.deepEqual(pass([aVolume({ epoch }, { ...exported, exported: false })], known).steps, []);
  assert.deepEqual(pass([held("a", exported)], known).steps, ["restore a"]);
  const id = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
  const imagePath = `/pool/csi/${id}.img`;
  const legacy = { id, imagePath, exported: true, exportNqn: `nqn.2000-02.com.mikrotik:${id}` };
  assert.deepEqual(pass([aVolume({ epoch }, legacy)], [attachment(id)]).steps, [`older-epoch ${id}`]);
});

Deno.test("isStillUnwanted() is false for a volume that is wanted, and where that is unknown", () => {
  const waiting = attachment("a", { nodeName: "x", attached: false, published: {} });
  assert.equal(isStillUnwanted(held("a"), [attachment("b")]), true);
  assert.equal(isStillUnwanted(held("a"), [waiting]), true);
  assert.equal(isStillUnwanted(held("a"), [attachment("a", { attached: false })]), false);
  assert.equal(isStillUnwanted(held("a"), [{ ...waiting, nodeName: "n" }]), false);
  assert.equal(isStillUnwanted(held("a"), [{ ...waiting, attached: true }]), false);
  assert.equal(isStillUnwanted(aVolume({ epoch }, { id: "a", exported: true }), [waiting]), false);
  assert.equal(isStillUnwanted(held("a"), [attachment(undefined)]), false);
});

Deno.test("reconcile() removes a holder when only another node's attachment of an earlier epoch names the volume", () => {
  const earlier = attachment("a", {
    nodeName: "x",
    published: parsePublishedExport({ epoch: "3-0a0b0c0d" }),
  });
  for (const volume of [held("a"), held("a", off)]) {
    assert.deepEqual(pass([volume], [earlier]).steps, ["withdraw a"]);
  }
  assert.equal(isStillUnwanted(held("a"), [earlier]), true);
  const wanted: readonly Partial<ClusterAttachment>[] = [
    { nodeId: "n" },
    { nodeName: "n" },
    { published: parsePublishedExport({ epoch: "4-0a0b0c0d" }) },
    { published: {} },
    { published: parsePublishedExport({ epoch: "no epoch" }) },
  ];
  for (const over of wanted) {
    const one = { ...earlier, ...over };
    assert.deepEqual(pass([held("a")], [one]).steps, [], JSON.stringify(over));
    assert.deepEqual(pass([held("a")], [earlier, one]).steps, [], JSON.stringify(over));
  }
});

const shared = () => aVolume({ epoch, holders: [aHolder("n"), aHolder("gone")] }, { id: "a" });
const waiting = attachment("a", { nodeName: "x", nodeId: "x", attached: false, published: {} });
const sharedBy: readonly (readonly [what: string, attachments: ClusterAttachment[], steps: string[]])[] = [
  ["another node waits beside the one that has it", [attachment("a"), waiting], ["leave a"]],
  ["both are named", [attachment("a"), attachment("a", { nodeName: "x", nodeId: "gone" })], []],
  ["one is being detached", [attachment("a"), attachment("a", { nodeName: "gone", deleting: true })], []],
  ["an attachment may be of any node", [attachment("a"), { ...waiting, nodeId: undefined }], []],
  ["none is named", [waiting], ["withdraw a"]],
];
for (const [what, attachments, steps] of sharedBy) {
  Deno.test(`reconcile() takes a shared volume from whom nothing names, where ${what}: ${steps}`, () => {
    const since = { unwantedSinceMs: new Map([["a", 0], ["a gone", 0]]) };
    assert.deepEqual(pass([shared()], attachments, since).steps, steps);
    assert.equal(isStillUnwantedOn(shared(), "gone", attachments), steps[0] === "leave a");
    assert.equal(isStillUnwantedOn(shared(), "n", attachments), false);
  });
}

Deno.test("reconcile() waits the grace period for one holder, too, and takes none away on a doubt", () => {
  const unseen = { unwantedSinceMs: new Map() };
  const first = pass([shared()], [attachment("a")], unseen);
  assert.deepEqual([first.steps, [...first.unwantedSinceMs.keys()]], [[], ["a gone"]]);
  const due = { unwantedSinceMs: new Map([["a gone", 0]]) };
  for (const over of [{ settled: false }, { isNamed: () => false }]) {
    const { steps, heldBack, heldBackReason } = pass([shared()], [attachment("a")], { ...due, ...over });
    assert.deepEqual([steps, heldBack.map(({ nodeId }) => nodeId)], [[], ["gone"]]);
    assert.match(heldBackReason ?? "", /./);
  }
  // Many holders of one volume are no sign of a restored cluster.
  const holders = ["n", "g1", "g2", "g3", "g4"].map((nodeId) => aHolder(nodeId));
  const since = new Map(holders.map(({ nodeId }) => [`a ${nodeId}`, 0]));
  const many = pass([aVolume({ epoch, holders }, { id: "a" }), held("b"), held("c")], [
    attachment("a"),
    attachment("b"),
    attachment("c"),
  ], { unwantedSinceMs: since });
  assert.deepEqual(many.steps, ["leave a", "leave a", "leave a"]);
});

Deno.test("servedCounter() returns the epoch under which nodes reach the volume", () => {
  const nqnOf = (end: string) => `nqn.2000-02.com.mikrotik:pvc-1:${end}`;
  const cases: readonly (readonly [Parameters<typeof aVolume>[1], number])[] = [
    [{ exported: false, exportNqn: nqnOf("2-0a0b0c0d") }, 4],
    [{ exported: true, exportNqn: nqnOf("2-0a0b0c0d") }, 2],
    [{ exported: true, exportNqn: nqnOf("5-0a0b0c0d") }, 4],
    [{ exported: true, exportNqn: "nqn.2024-01.org.example:films" }, 4],
  ];
  for (const [disk, counter] of cases) assert.equal(servedCounter(aVolume({ epoch }, disk)), counter);
});
