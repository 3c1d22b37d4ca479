import { refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { aCreate, inTime, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { allowFormat } from "./allow_format.ts";
import { createSnapshot } from "../snapshots/create.ts";
import { createVolume } from "./create.ts";

const context = testContext();
const epoch = { counter: 5, nonce: "0123abcd" };

Deno.test("allowFormat() renews blankness for exactly the next epoch", async () => {
  const made = testController();
  const [{ deps, store }, { publish, unpublish }] = [made, volumeCalls(made)];
  store.put(aDisk(aRecord({ epoch })));
  await allowFormat(deps, "pvc-1", context);
  assert.equal(store.takeCount(), 2);
  assert.equal((await publish()).mayFormat, "true");
  await unpublish();
  assert.equal((await publish()).mayFormat, "false");
});

Deno.test("allowFormat() allows it for a clone with data, and for nothing that is made from that clone", async () => {
  const made = testController();
  const { deps, store, clock } = made;
  store.put(aDisk(aRecord({ epoch })));
  const clone = async (name: string, id: string) =>
    (await inTime(clock, createVolume(deps, aCreate(name, { source: { kind: "volume", id } }), context)))
      .stored.id;
  const first = await clone("first", "pvc-1");
  await allowFormat(deps, first, context);
  const snapshot = await inTime(clock, createSnapshot(deps, { name: "s", source: first }, context));
  const second = await clone("second", first);
  const { mayFormat } = await volumeCalls(made, second).publish();
  assert.deepEqual([snapshot.blank, mayFormat], [false, "false"]);
  assert.equal((await volumeCalls(made, first).publish()).mayFormat, "true");
});

Deno.test("allowFormat() refuses what is in use, exported, raw or not there", async () => {
  const cases = [
    [aDisk(aRecord({ epoch, holders: [aHolder("a")] })), "precondition"],
    [aDisk(aRecord({ epoch }), { exported: true }), "precondition"],
    [aDisk(aRecord({ capabilities: "block/w" })), "precondition"],
    [aDisk(aRecord(), { id: "pvc-2" }), "not-found"],
  ] as const;
  for (const [disk, kind] of cases) {
    const { deps, store } = testController();
    store.put(disk);
    await refusedUnchanged(store, () => allowFormat(deps, "pvc-1", context), refusal(kind));
  }
});

Deno.test("allowFormat() is busy when the volume is published in between", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord({ epoch })));
  const published = aDisk(aRecord({ epoch: { ...epoch, counter: 6 }, holders: [aHolder("a")] }));
  store.mishap("change", { before: () => store.put(published) });
  await assert.rejects(allowFormat(deps, "pvc-1", context), refusal("busy"));
  assert.deepEqual(store.disks.get("pvc-1"), published);
});
