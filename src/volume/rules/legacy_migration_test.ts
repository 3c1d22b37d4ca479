import assert from "node:assert/strict";
import { aClusterVolume, anAttachment } from "../../../tests/fakes/cluster_view.ts";
import { aDisk, aHolder, aRecord, testBase, testCluster, testPrefix } from "../../../tests/fakes/records.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { isLegacyEpoch } from "../model/epoch.ts";
import { assertOwned } from "./ownership.ts";
import type { StoredVolume } from "../model/inventory.ts";
import { decidePublish, nqnOf, publishedNodeIds } from "./publish.ts";
import { commentWithoutRecord, formatComment } from "../model/record.ts";
import {
  assertLeftByLegacyDriver,
  awaitsHolders,
  claimOf,
  type LegacyScene,
  migratedComment,
} from "./legacy_migration.ts";

const id = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const path = `${testBase}/${id}.img`;
const nqn = `${testPrefix}:${id}`;
const left: StoredVolume = {
  id,
  imagePath: path,
  sizeBytes: 1n << 30n,
  exported: true,
  exportNqn: nqn,
  exportPort: 4420,
  comment: "",
};
const random = new SeededRandom(1);

Deno.test("claimOf() returns kind, mode and holders from the cluster's objects", () => {
  const cases: readonly [string, Parameters<typeof aClusterVolume>[1], string, string][] = [
    ["one node", {}, "ext4", "single-node-multi-writer"],
    ["one pod", { accessModes: ["ReadWriteOncePod"] }, "ext4", "single-node-single-writer"],
    ["readers", { accessModes: ["ReadOnlyMany"], readOnly: true }, "ext4", "multi-node-reader-only"],
    ["shared block", { access: "block", accessModes: ["ReadWriteMany"] }, "block", "multi-node-multi-writer"],
    [
      "block for one or many",
      { access: "block", accessModes: ["ReadWriteOnce", "ReadWriteMany"] },
      "block",
      "multi-node-multi-writer",
    ],
    ["xfs", { fsType: "xfs" }, "xfs", "single-node-multi-writer"],
    ["xfs by its class", { fsType: "", attributes: { fsType: "xfs" } }, "xfs", "single-node-multi-writer"],
    ["no word of it", { fsType: "" }, "ext4", "single-node-multi-writer"],
  ];
  for (const [name, over, kind, mode] of cases) {
    const claim = claimOf(aClusterVolume(id, over), [anAttachment(id, "node-1")], 0);
    assert.equal(claim.kind.access === "block" ? "block" : claim.kind.filesystem, kind, name);
    assert.equal(claim.mode, mode, name);
    assert.deepEqual(claim.holders, [
      { nodeId: "node-1", sinceSeconds: 1_700_000_000, mode, readOnly: over?.readOnly ?? false },
    ], name);
  }
});

Deno.test("claimOf() counts only complete attachments of the volume", () => {
  const attachments = [
    anAttachment(id, "node-1", { attached: false }),
    anAttachment("pvc-2", "node-2"),
    anAttachment(id, "node-3", { sinceSeconds: undefined }),
    anAttachment(id, "node-3"),
  ];
  const { holders } = claimOf(aClusterVolume(id), attachments, 5_000);
  assert.deepEqual(holders.map(({ nodeId, sinceSeconds }) => [nodeId, sinceSeconds]), [["node-3", 5]]);
});

Deno.test("claimOf() refuses whatever leaves a doubt", () => {
  const both = [anAttachment(id, "node-1"), anAttachment(id, "node-2")];
  const cases: readonly [Parameters<typeof aClusterVolume>[1], typeof both, RegExp][] = [
    [{}, both, /more nodes have it than may: nodes=node-1, node-2/],
    [
      { access: "block", accessModes: ["ReadWriteMany"] },
      [...both, anAttachment(id, "node-3")],
      /more nodes/,
    ],
    [{ accessModes: ["ReadWriteMany"] }, [], /several nodes would corrupt/],
    [{ accessModes: ["ReadOnlyMany", "ReadWriteOnce"] }, [], /not one of CSI's/],
    [{ accessModes: [] }, [], /not one of CSI's/],
    [{ fsType: "btrfs" }, [], /fsType=btrfs/],
  ];
  for (const [over, attachments, text] of cases) {
    assert.throws(() => claimOf(aClusterVolume(id, over), attachments, 0), refusal("precondition", text));
  }
  assert.throws(
    () => claimOf(aClusterVolume(id), [anAttachment(id, "node 1")], 0),
    refusal("invalid", /node id/),
  );
});

const scene: LegacyScene = {
  basePaths: [testBase],
  nqnPrefix: testPrefix,
  cluster: testCluster,
  sharers: [],
  files: [{ path, sizeBytes: 1n << 30n, directory: false }],
};

Deno.test("assertLeftByLegacyDriver() accepts a disk as the legacy driver leaves it, exported or not, with a note or without", () => {
  for (const over of [{}, { exported: false }, { exported: false, exportNqn: "" }, { comment: "mine" }]) {
    assertLeftByLegacyDriver({ ...left, ...over }, scene);
  }
  assert.ok(true);
});

Deno.test("assertLeftByLegacyDriver() refuses any doubt", () => {
  const elsewhere = `/pool/other/${id}.img`;
  const cases: readonly [Partial<StoredVolume>, Partial<LegacyScene>, RegExp][] = [
    [{ id: "pvc-1" }, {}, /none of the legacy driver's/],
    [{ comment: aDisk(aRecord()).comment }, {}, /none of the legacy driver's/],
    [{ imagePath: elsewhere }, {}, /no folder of --base-path/],
    [{ imagePath: `${testBase}/deeper/${id}.img` }, {}, /no folder of --base-path/],
    [{ exportNqn: `nqn.2024-01.com.example:${id}` }, {}, /another name/],
    [{ exported: false, exportNqn: `nqn.2024-01.com.example:${id}` }, {}, /another name/],
    [{}, { sharers: [{ ...left, id: "disk1" }] }, /disk=disk1/],
    // A snapshot of the legacy driver, if it had no path of its own.
    [{}, { sharers: [{ ...left, id: `snap-${id.slice(4)}`, exported: false }] }, /disk=snap-0f8fad5b/],
    [{}, { files: [] }, /does not exist/],
    [{}, { files: [{ path, sizeBytes: 0n, directory: true }] }, /does not exist/],
    [{}, { files: [{ path, sizeBytes: 1n, directory: false }] }, /smaller/],
  ];
  for (const [over, other, text] of cases) {
    const work = () => assertLeftByLegacyDriver({ ...left, ...over }, { ...scene, ...other });
    assert.throws(work, refusal("precondition", text));
  }
});

function taken(stored: StoredVolume, nodes: readonly string[] = []) {
  const claim = claimOf(aClusterVolume(id), nodes.map((node) => anAttachment(id, node)), 0);
  const comment = formatComment(migratedComment(stored, claim, testCluster, random));
  return assertOwned({ ...stored, comment }, testCluster, "test");
}

Deno.test("migratedComment() keeps existing text, and gives it back", () => {
  for (const comment of ["", "mine", "mine, of 2024 ", "a {brace}"]) {
    const volume = taken({ ...left, comment }, ["node-1"]);
    assert.equal(commentWithoutRecord(volume.comment), comment);
    assert.equal(isLegacyEpoch(volume.record.epoch), true);
    assert.equal(volume.record.blankEpoch, 0);
  }
});

Deno.test("migratedComment() never writes the same record again, for a command that the router runs late", () => {
  const comments = Array.from({ length: 20 }, () => taken(left).stored.comment);
  assert.equal(new Set(comments).size, comments.length);
});

Deno.test("a migrated volume keeps its NQN, in whatever mode its one writer asks", () => {
  const volume = taken(left, ["node-1"]);
  assert.deepEqual(publishedNodeIds(volume), ["node-1"]);
  assert.equal(nqnOf(volume, volume.record.epoch!, testPrefix), nqn);
  for (
    const mode of ["single-node-writer", "single-node-multi-writer", "single-node-single-writer"] as const
  ) {
    const capability = { access: "mount", filesystem: "ext4", mode } as const;
    const request = { nodeId: "node-1", capability, readOnly: false };
    assert.equal(decidePublish(volume, request, { nowMs: 0, random }).action, "held", mode);
    assert.throws(
      () => decidePublish(volume, { ...request, readOnly: true }, { nowMs: 0, random }),
      refusal("exists-incompatible"),
    );
    assert.throws(
      () => decidePublish(volume, { ...request, nodeId: "node-2" }, { nowMs: 0, random }),
      refusal("published-elsewhere", /node=node-1/),
    );
  }
  const off = { ...volume, stored: { ...volume.stored, exported: false } };
  assert.deepEqual(publishedNodeIds(off), []);
  assert.equal(
    nqnOf({ ...off, stored: { ...off.stored, exportNqn: "" } }, off.record.epoch!, testPrefix),
    nqn,
  );
});

Deno.test("awaitsHolders() holds until the first withdrawal, and for no other volume", () => {
  const open = taken(left);
  assert.equal(awaitsHolders(open), true);
  assert.equal(awaitsHolders(taken(left, ["node-1"])), false);
  assert.equal(awaitsHolders({ ...open, stored: { ...open.stored, exported: false } }), false);
  assert.equal(awaitsHolders({ ...open, record: { ...open.record, withdrawnAtSeconds: 1 } }), false);
  const own = aRecord({ epoch: { counter: 1, nonce: "0a0b0c0d" }, holders: [aHolder("node-1")] });
  assert.equal(awaitsHolders(assertOwned(aDisk(own), testCluster, "test")), false);
});
