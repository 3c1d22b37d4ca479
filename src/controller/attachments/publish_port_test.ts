import assert from "node:assert/strict";
import {
  aPublish,
  sharedBlock,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { parseVolumeContext } from "../../volume/model/parameters.ts";
import { publishVolume } from "./publish.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };

Deno.test("publishVolume() keeps the port for the node that holds the volume when another one joins", async () => {
  const { store, deps } = testController();
  store.put(aDisk(aRecord({ capabilities: "block/x" })));
  const joint = { capability: sharedBlock };
  await publishVolume(deps, "pvc-1", aPublish("a", joint), testParameters, context);
  const elsewhere = { ...testParameters, nvmePort: 4421 };
  for (const exported of [true, false]) {
    store.edit("pvc-1", { exported });
    const joined = await publishVolume(deps, "pvc-1", aPublish("b", joint), elsewhere, context);
    assert.equal(joined["nvmePort"], "4420");
    assert.equal(store.disks.get("pvc-1")?.exportPort, 4420);
  }
});

for (const exported of [true, false]) {
  Deno.test(`publishVolume() keeps the port for its node if no PersistentVolume names one: exported ${exported}`, async () => {
    const { store, deps } = testController();
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { exported }));
    const changed = parseVolumeContext({}, { ...deps.settings, nvmePort: 4421 });
    const published = await publishVolume(deps, "pvc-1", aPublish("a"), changed, context);
    assert.equal(published["nvmePort"], "4420");
    const disk = store.disks.get("pvc-1")!;
    assert.deepEqual([disk.exported, disk.exportPort], [true, 4420]);
  });
}

Deno.test("publishVolume() begins an epoch on the controller's present port if no PersistentVolume names one", async () => {
  const { store, deps } = testController({ unexportGraceMs: 0 });
  store.put(aDisk(aRecord({ epoch }), { exported: false }));
  const changed = parseVolumeContext({}, { ...deps.settings, nvmePort: 4421 });
  assert.equal((await publishVolume(deps, "pvc-1", aPublish("a"), changed, context))["nvmePort"], "4421");
});
