import assert from "node:assert/strict";
import { aCreate, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { createVolume } from "../volumes/create.ts";

const epoch = { counter: 3, nonce: "0123abcd" };

/** A controller that has just taken over, on a router with a volume that the node a holds. */
function takenOver() {
  const made = testController({ unexportGraceMs: 0 });
  const { deps, store } = made;
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a")] })));
  deps.memory.inDoubt.suspectOthers();
  const calls = async (call: () => Promise<unknown>) => {
    const { length } = store.calls;
    await call();
    return store.calls.slice(length).map(({ method }) => method);
  };
  return { ...made, ...volumeCalls(made), calls };
}

Deno.test("the first change of a volume after another controller has led is read again, and no later one", async () => {
  const { calls, publish, unpublish, clock } = takenOver();
  const startMs = clock.now();
  assert.deepEqual(await calls(() => publish("a")), ["view", "change", "view"]);
  assert.ok(clock.now() - startMs >= 2_000);
  assert.deepEqual(await calls(unpublish), ["view", "change"]);
  assert.deepEqual(await calls(() => publish("b")), ["view", "change"]);
});

Deno.test("a change is not read again where no other controller has led lately", async () => {
  const { calls, unpublish, clock } = takenOver();
  await clock.advance(600_000);
  assert.deepEqual(await calls(unpublish), ["view", "change"]);
});

Deno.test("a change that is gone when it is read again is not answered OK", async () => {
  const { store, clock, publish, unpublish } = takenOver();
  const before = store.disks.get("pvc-1")!;
  const dead = () => store.edit("pvc-1", { comment: before.comment, exported: true });
  clock.timer(1_000, dead);
  await assert.rejects(unpublish(), refusal("busy", /changed at the same time/));
  await unpublish();
  assert.equal(store.disks.get("pvc-1")!.exported, false);
  clock.timer(1_000, () => store.disks.delete("pvc-1"));
  store.put(before);
  await assert.rejects(publish("a"), refusal("unavailable"));
});

Deno.test("a change that meets another image in the slot is not answered OK", async () => {
  const { store, publish } = takenOver();
  const swap = () => store.edit("pvc-1", { imagePath: "/pool/csi/other.img" });
  store.mishap("change", { after: swap });
  await assert.rejects(publish("a"), refusal("busy", /changed at the same time/));
});

Deno.test("a volume that this controller has made is not read again: nobody else can have sent a change of it", async () => {
  const { calls, ...made } = takenOver();
  const { stored } = await createVolume(made.deps, aCreate("new"), testContext());
  assert.deepEqual(await calls(volumeCalls(made, stored.id).publish), ["view", "change"]);
});
