// Unpublishing by what the controller remembers of its last change, as far as that differs from other calls (unread_calls_test).
import assert from "node:assert/strict";
import { rememberingController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { nodeIdsOf, type VolumeRecord } from "../../volume/model/record.ts";

/** A controller that has published the volume to the node a. */
async function published(unexportGraceMs = 0) {
  const made = rememberingController(aDisk(aRecord()), { unexportGraceMs });
  const { store } = made;
  const shown: string[] = [];
  const projection = {
    ...made.deps.projection,
    show: (id: string, { holders }: VolumeRecord) => void shown.push(`${id} ${nodeIdsOf(holders).join()}`),
  };
  const deps = { ...made.deps, projection };
  const calls = volumeCalls({ ...made, deps });
  await calls.publish();
  store.takeCount();
  const isOff = () => !calls.disk().exported && calls.holders() === "";
  return { ...made, ...calls, shown, isOff };
}

Deno.test("unpublishVolume() shows the cluster that nobody has the volume", async () => {
  const { unpublish, methods, shown, isOff } = await published();
  await unpublish();
  assert.deepEqual([methods(), shown, isOff()], [["change"], ["pvc-1 a", "pvc-1 "], true]);
});

Deno.test("unpublishVolume() writes a withdrawal that the router made late once, and the grace counts from its read-back", async () => {
  const { store, clock, publish, unpublish, methods } = await published(30_000);
  store.lingerMs = 30_000;
  store.mishap("change", { takesMs: 5_000 });
  await unpublish();
  assert.deepEqual(methods(), ["change"]);
  const startMs = clock.monotonicMs();
  await publish();
  assert.ok(clock.monotonicMs() - startMs >= 29_000);
  assert.deepEqual(store.violations, []);
});

Deno.test("unpublishVolume() reads first of a node that is not the holder, and of all nodes", async () => {
  const { unpublish, methods, isOff } = await published();
  await unpublish("b");
  assert.deepEqual([methods(), isOff()], [["view"], false]);
  await unpublish("");
  assert.deepEqual(methods(), ["view", "change"]);
});
