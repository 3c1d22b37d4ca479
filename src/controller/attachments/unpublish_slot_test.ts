// A person gives a disk another slot, and puts a copy of it into the old one: both have the record, and one is exported on.
import assert from "node:assert/strict";
import { inTime, rememberingController, testContext } from "../../../tests/fakes/controller_deps.ts";
import { testBase } from "../../../tests/fakes/records.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { withdrawVolume } from "./unpublish.ts";

const context = testContext();
const id = "pvc-1";

async function published() {
  const made = rememberingController(aDisk(aRecord()));
  const { store, deps, clock } = made;
  const { publish, unpublish } = volumeCalls(made);
  await publish();
  store.takeCount();
  const giveAnotherSlot = () => {
    const disk = store.disks.get(id)!;
    const imagePath = `${testBase}/a-copy.img`;
    store.put({ ...disk, id, imagePath });
    store.put({ ...disk, id: "moved" });
  };
  const withdraw = () => inTime(clock, withdrawVolume(deps, id, context));
  const isExported = () => store.disks.get("moved")!.exported;
  return { ...made, giveAnotherSlot, unpublish, withdraw, isExported };
}

Deno.test("an unpublish without a read is not answered while the volume is exported from another slot", async () => {
  const { store, giveAnotherSlot, unpublish, isExported } = await published();
  giveAnotherSlot();
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(
      unpublish(),
      refusal("precondition", /another slot and is still exported.*slot=moved/),
    );
  }
  assert.ok(isExported());
  // Its nodes would have lost it, and whoever has the copy.
  assert.ok(store.disks.get(id)!.exported);
});

for (const how of ["unpublish", "withdraw"] as const) {
  Deno.test(`a disk that was given another slot between the read and the command is looked at again: ${how}`, async () => {
    const { store, deps, giveAnotherSlot, isExported, ...calls } = await published();
    deps.memory.known.forgetAll();
    store.mishap("change", { before: giveAnotherSlot });
    await assert.rejects(calls[how](), refusal("busy"));
    await assert.rejects(calls[how](), refusal("precondition", /another slot/));
    assert.ok(isExported());
  });
}

Deno.test("a disk that gets its slot back between the read and the search of the others is not taken for gone", async () => {
  const { store, unpublish, deps } = await published();
  const path = "/pool/data/a-persons.img";
  deps.memory.known.forgetAll();
  const disk = { ...store.disks.get(id)!, imagePath: path };
  store.allFiles.clear();
  store.disks.delete(id);
  store.put({ ...disk, id: "moved" });
  store.mishap("inventory", {
    before: () => {
      store.disks.delete("moved");
      store.put(disk);
    },
  });
  await assert.rejects(unpublish(), refusal("busy", /at the same time/));
  assert.ok(store.disks.get(id)!.exported);
});
