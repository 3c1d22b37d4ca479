import assert from "node:assert/strict";
import { aHolder, aVolume } from "../../../tests/fakes/records.ts";
import { isMigrating, overdueMigration } from "./migration_pairs.ts";

const shared = (nodeId: string, sinceSeconds: number) =>
  aHolder(nodeId, { sinceSeconds, mode: "multi-node-multi-writer" });
const epoch = { counter: 1, nonce: "0a0b0c0d" };
const volume = aVolume({ epoch, holders: [shared("new", 1_000), shared("old", 10)] });

Deno.test("overdueMigration() names the older node once both have had the volume for too long", () => {
  assert.equal(overdueMigration(volume, 300, 1_300_000), undefined);
  assert.deepEqual(overdueMigration(volume, 300, 1_301_000), {
    volumeId: "pvc-1",
    older: "old",
    newer: "new",
    limitSeconds: 300,
  });
});

Deno.test("overdueMigration() has nothing to say of one writer, or of readers", () => {
  assert.equal(overdueMigration(aVolume({ epoch, holders: [shared("a", 0)] }), 300, 1e12), undefined);
  const readers = ["a", "b"].map((id) => aHolder(id, { mode: "multi-node-reader-only" }));
  assert.equal(overdueMigration(aVolume({ epoch, holders: readers }), 300, 1e12), undefined);
});

Deno.test("isMigrating() is so of two writers, and not of one or of readers", () => {
  const isSo = (...holders: Parameters<typeof isMigrating>[0]["holders"]) =>
    isMigrating(aVolume({ epoch, holders }).record);
  const readers = ["a", "b"].map((id) => aHolder(id, { mode: "multi-node-reader-only" }));
  assert.deepEqual([isSo(), isSo(shared("a", 1)), isSo(...readers)], [false, false, false]);
  assert.equal(isSo(shared("a", 1), shared("b", 1)), true);
});
