import assert from "node:assert/strict";
import { gibibyte, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord, subvolumeImage } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { importedSource } from "../../volume/model/sources.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import type { ControllerSettings } from "../deps.ts";

/** A controller on a router with the volume `pvc-1`, of a gibibyte. */
function controller(record: Partial<VolumeRecord> = {}, settings: Partial<ControllerSettings> = {}) {
  const made = testController(settings);
  made.store.put(aDisk(aRecord({ epoch: { counter: 3, nonce: "0123abcd" }, ...record })));
  return { ...made, ...volumeCalls(made) };
}

Deno.test("publishVolume() grows a disk again whose router forgot that it had grown", async () => {
  const { store, publish } = controller();
  const { imagePath } = store.disks.get("pvc-1")!;
  store.putFile(imagePath, 2n * gibibyte);
  const { size } = await publish("a");
  assert.deepEqual([size, store.disks.get("pvc-1")!.sizeBytes], [String(2n * gibibyte), 2n * gibibyte]);
  store.putFile(imagePath, 3n * gibibyte);
  assert.equal(
    (await publish("a")).size,
    String(3n * gibibyte),
    "nor is it smaller for who has it, or was to have it",
  );
});

Deno.test("publishVolume() leaves a disk as large as it is whose export is on, where it would have to be turned off", async () => {
  const { store, publish } = controller({}, { growth: "after-toggle" });
  const { size } = await publish("a");
  store.putFile(store.disks.get("pvc-1")!.imagePath, 2n * gibibyte);
  assert.equal((await publish("a")).size, size);
});

Deno.test("publishVolume() grows a disk again after it has withdrawn an export that was forgotten, too", async () => {
  const { store, publish } = controller({}, { unexportGraceMs: 0 });
  store.edit("pvc-1", { exported: true, exportNqn: "nqn.2000-02.com.mikrotik:pvc-1:3-0123abcd" });
  store.putFile(store.disks.get("pvc-1")!.imagePath, 2n * gibibyte);
  store.mishap("change", { after: () => store.edit("pvc-1", { sizeBytes: gibibyte }) });
  assert.equal((await publish("a")).size, String(2n * gibibyte));
});

Deno.test("publishVolume() gives a volume to its node all the same where the router takes the size and grows nothing", async () => {
  const { store, publish } = controller();
  store.putFile(store.disks.get("pvc-1")!.imagePath, 2n * gibibyte);
  store.mishap("change", { after: () => store.edit("pvc-1", { sizeBytes: gibibyte }) });
  assert.equal((await publish("a")).size, String(gibibyte));
  assert.deepEqual(store.calls.map(({ method }) => method), ["view", "change", "change"]);
  assert.equal(store.disks.get("pvc-1")!.exported, true);
});

Deno.test("publishVolume() leaves a disk as large as it is that was imported", async () => {
  const { store, publish } = controller({ source: importedSource("pvc-1", subvolumeImage("pvc-1")) });
  store.putFile(store.disks.get("pvc-1")!.imagePath, 2n * gibibyte);
  assert.equal((await publish("a")).size, String(gibibyte));
});
