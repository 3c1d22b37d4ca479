import assert from "node:assert/strict";
import { aDisk, aRecord, testCluster, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { StoredVolume } from "../model/inventory.ts";
import { assertNotForeign, assertOwned, judgeOwnership } from "./ownership.ts";

const whole = aDisk(aRecord());
const disks = {
  "owned": whole,
  "other-cluster": aDisk(aRecord({ cluster: "ffffffff" })),
  "no-record": { ...whole, comment: "somebody's" },
  "damaged": { ...whole, comment: whole.comment.replace("b=1", "b=2") },
};

Deno.test("judgeOwnership() goes by the record alone, whatever slot and path look like", () => {
  for (const [state, disk] of Object.entries(disks)) {
    assert.equal(judgeOwnership(disk, testCluster).state, state);
    const moved = { ...disk, id: "disk1", imagePath: "/elsewhere/x.img" };
    assert.equal(judgeOwnership(moved, testCluster).state, state);
  }
});

const legacyId = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const earlier: StoredVolume = {
  ...whole,
  id: legacyId,
  imagePath: `/pool/volumes/${legacyId}.img`,
  exported: true,
  exportNqn: `${testPrefix}:${legacyId}`,
  comment: "",
};

Deno.test("judgeOwnership() recognises a volume of the legacy driver by slot, path and NQN together", () => {
  const cases: [string, Partial<StoredVolume>, string][] = [
    ["as it was left", {}, "earlier-driver"],
    ["with a note", { comment: "mine" }, "earlier-driver"],
    ["with another prefix", { exportNqn: `nqn.2024-01.com.example:${legacyId}` }, "earlier-driver"],
    ["no longer exported", { exported: false }, "earlier-driver"],
    ["never exported", { exported: false, exportNqn: "" }, "earlier-driver"],
    ["another slot", { id: "pvc-0f8fad5bd9cb469fa16570867728" }, "no-record"],
    ["another file", { imagePath: "/pool/volumes/precious.img" }, "no-record"],
    ["a file with a longer name", { imagePath: `/pool/volumes/old-${legacyId}.img` }, "no-record"],
    ["a file of this driver", { imagePath: `/pool/volumes/${legacyId}.${testCluster}.img` }, "no-record"],
    ["exported under another NQN", { exportNqn: "nqn.x" }, "no-record"],
    ["exported without an NQN", { exportNqn: "" }, "no-record"],
    ["exported for an epoch", { exportNqn: `${testPrefix}:${legacyId}:1-0123abcd` }, "no-record"],
    ["taken over by this driver", { comment: whole.comment }, "owned"],
    ["taken over, then damaged", { comment: whole.comment.slice(0, -2) }, "damaged"],
  ];
  for (const [name, change, state] of cases) {
    assert.equal(judgeOwnership({ ...earlier, ...change }, testCluster).state, state, name);
  }
});

Deno.test("assertOwned() returns this cluster's volume with its record", () => {
  assert.deepEqual(assertOwned(whole, testCluster, "test").record, aRecord());
});

Deno.test("assertOwned() refuses every other disk and says why", () => {
  const cases = [
    ["other-cluster", /belongs to another cluster: .*cluster=ffffffff/],
    ["no-record", /carries no record/],
    ["damaged", /is damaged: .*check digits/],
  ] as const;
  for (const [state, text] of cases) {
    assert.throws(() => assertOwned(disks[state], testCluster, "grow"), refusal("precondition", text));
    assert.throws(
      () => assertOwned(disks[state], testCluster, "grow"),
      refusal("precondition", /^Cannot grow the/),
    );
  }
  assert.throws(
    () => assertOwned(earlier, testCluster, "grow"),
    refusal("precondition", /^Cannot grow the volume because the legacy driver made it .*it is left alone/),
  );
});

Deno.test("assertNotForeign() refuses hardware and accepts an empty slot", () => {
  assertNotForeign(undefined, "delete");
  const disk = { id: "storage-pool", kind: "raid" };
  assert.throws(
    () => assertNotForeign(disk, "delete"),
    refusal("precondition", /volume=storage-pool type=raid/),
  );
});
