import { refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import {
  aPublish,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { allowFormat } from "./allow_format.ts";
import { publishVolume } from "../attachments/publish.ts";
import { unpublishVolume } from "../attachments/unpublish.ts";

const context = testContext();
const epoch = { counter: 5, nonce: "0123abcd" };

Deno.test("allowFormat() renews blankness for exactly the next epoch", async () => {
  const { deps, store, clock } = testController();
  store.put(aDisk(aRecord({ epoch })));
  await allowFormat(deps, "pvc-1", context);
  assert.equal(store.takeCount(), 2);
  const publish = () => inTime(clock, publishVolume(deps, "pvc-1", aPublish("a"), testParameters, context));
  assert.equal((await publish()).mayFormat, "true");
  await unpublishVolume(deps, "pvc-1", "a", context);
  assert.equal((await publish()).mayFormat, "false");
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
