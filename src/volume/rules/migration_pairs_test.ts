import assert from "node:assert/strict";
import {
  type ClaimUser,
  isMigrating,
  overdueMigration,
  type PairNode,
  reasonAgainstPair,
} from "./migration_pairs.ts";
import { aHolder, aVolume } from "../../../tests/fakes/records.ts";

/** A pod on the Node of its name. */
const pod = (name: string, over: Partial<ClaimUser> = {}): ClaimUser => ({
  ...{ name, uid: `uid-${name}`, nodeName: `node-${name}` },
  ...{ usesClaim: true, hasEnded: false, machine: "vm-1", owners: [] },
  ...over,
});
const ended = (name: string) => pod(name, { usesClaim: false, hasEnded: true });
const disk = (name: string, owner: string) =>
  pod(name, { machine: undefined, owners: [`uid-${owner}`], nodeName: `node-${owner}` });

/** What the node a has, and b asks for. */
const nodes = ["a", "b"].map((nodeId): PairNode => ({ nodeId, nodeNames: [`node-${nodeId}`] }));

const pairs: readonly (readonly [what: string, pods: ClaimUser[], reason: RegExp | undefined])[] = [
  ["the two pods of one machine", [pod("a"), pod("b")], undefined],
  ["one pod of a machine", [pod("a")], /no pod of its virtual machine runs on node-b/],
  [
    "a new machine's pod, when that of the holder's node is gone,",
    [pod("b", { machine: "vm-2" })],
    /on node-a/,
  ],
  [
    "a new machine's pod, when that of the holder's node has ended,",
    [ended("a"), pod("b", { machine: "vm-2" })],
    /on node-a/,
  ],
  ["a machine's pod, when its other one has ended,", [ended("a"), pod("b")], /on node-a/],
  ["two pods of one machine on one node", [pod("b"), pod("c", { nodeName: "node-b" })], /on node-a/],
  ["a pod that no node has yet", [pod("a"), pod("b", { nodeName: "" })], /on node-b/],
  [
    "a plugged disk whose machine's pod has ended",
    [{ ...ended("a"), machine: "vm-1" }, pod("b", { usesClaim: false }), disk("da", "a"), disk("db", "b")],
    /on node-a/,
  ],
  [
    "plugged disks of one machine's pods",
    [pod("a", { usesClaim: false }), pod("b", { usesClaim: false }), disk("da", "a"), disk("db", "b")],
    undefined,
  ],
  [
    "the two pods of one machine beside those of its migrations that are over",
    [ended("old"), pod("a"), ended("failed"), pod("b")],
    undefined,
  ],
  [
    "two pods of one machine with a disk plugged into each, and into one that is over,",
    [
      pod("a"),
      pod("b"),
      disk("da", "a"),
      disk("db", "b"),
      disk("da2", "a"),
      ended("old"),
      disk("dold", "old"),
    ],
    undefined,
  ],
  ["three pods of one machine", [pod("a"), pod("b"), pod("c")], /more than two pods.*use it: a, b, c/],
  [
    "plugged disks of three pods of one machine",
    [
      ...["a", "b", "c"].map((name) => pod(name, { usesClaim: false })),
      ...["a", "b", "c"].map((name) => disk(`d${name}`, name)),
    ],
    /more than two pods.*use it: da, db, dc/,
  ],
  ["nobody", [], /no pod uses its claim/],
  ["a machine that does not use it", [pod("a", { usesClaim: false })], /no pod uses its claim/],
  [
    "the pods of two machines",
    [pod("a"), pod("b", { machine: "vm-2" })],
    /several virtual machines use it: a, b/,
  ],
  ["a pod beside a machine's", [pod("a"), pod("web", { machine: undefined })], /the pod web uses it/],
  ["a plugged disk of nobody", [pod("a"), disk("da", "gone")], /the pod da uses it/],
];
for (const [what, pods, reason] of pairs) {
  Deno.test(`reasonAgainstPair() ${reason === undefined ? "lets" : "does not let"} ${what} share a volume`, () => {
    const found = reasonAgainstPair(pods, nodes);
    if (reason === undefined) assert.equal(found, undefined);
    else assert.match(found ?? "", reason);
  });
}

Deno.test("reasonAgainstPair() names a node whose id no Node has, or several", () => {
  const found = (...nodeNames: string[]) =>
    reasonAgainstPair([pod("a"), pod("b")], [nodes[1]!, { nodeId: "id-a", nodeNames }]);
  assert.match(found() ?? "", /registered on no Node under the id id-a/);
  assert.match(found("node-a", "node-b") ?? "", /several Nodes have the id id-a/);
});

const shared = (nodeId: string, sinceSeconds: number) =>
  aHolder(nodeId, { sinceSeconds, mode: "multi-node-multi-writer" });
const epoch = { counter: 1, nonce: "0a0b0c0d" };
const volume = aVolume({ epoch, holders: [shared("new", 1_000), shared("old", 10)] });

Deno.test("overdueMigration() names the older node once both have held the volume for too long", () => {
  assert.equal(overdueMigration(volume, 300, 1_300_000), undefined);
  assert.deepEqual(overdueMigration(volume, 300, 1_301_000), {
    volumeId: "pvc-1",
    older: "old",
    newer: "new",
    limitSeconds: 300,
  });
});

Deno.test("overdueMigration() returns nothing for one writer, or for readers", () => {
  assert.equal(overdueMigration(aVolume({ epoch, holders: [shared("a", 0)] }), 300, 1e12), undefined);
  const readers = ["a", "b"].map((id) => aHolder(id, { mode: "multi-node-reader-only" }));
  assert.equal(overdueMigration(aVolume({ epoch, holders: readers }), 300, 1e12), undefined);
});

Deno.test("isMigrating() is true for two writers, and not for one or for readers", () => {
  const isSo = (...holders: Parameters<typeof isMigrating>[0]["holders"]) =>
    isMigrating(aVolume({ epoch, holders }).record);
  const readers = ["a", "b"].map((id) => aHolder(id, { mode: "multi-node-reader-only" }));
  assert.deepEqual([isSo(), isSo(shared("a", 1)), isSo(...readers)], [false, false, false]);
  assert.equal(isSo(shared("a", 1), shared("b", 1)), true);
});
