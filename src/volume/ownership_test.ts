import assert from "node:assert/strict";
import { aDisk, aRecord, testCluster } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
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
});

Deno.test("assertNotForeign() refuses hardware and lets an empty slot pass", () => {
  assertNotForeign(undefined, "delete");
  const disk = { id: "storage-pool", kind: "raid" };
  assert.throws(
    () => assertNotForeign(disk, "delete"),
    refusal("precondition", /volume=storage-pool type=raid/),
  );
});
