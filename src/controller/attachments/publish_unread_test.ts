// Publishing by what the controller remembers of its last change, as far as that differs from other calls (unread_calls_test).
import assert from "node:assert/strict";
import { rememberingController, testContext } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { expandVolume } from "../volumes/expand.ts";

const context = testContext();
const id = "pvc-1";

/** A controller that has made the volume last and published it to nobody. */
function remembering({ unexportGraceMs = 0 } = {}) {
  const made = rememberingController(aDisk(aRecord()), { unexportGraceMs });
  const calls = volumeCalls(made);
  const isOn = (nodeId = "a") =>
    calls.disk().exported && calls.holders() === nodeId && made.store.violations.length === 0;
  return { ...made, ...calls, isOn };
}

Deno.test("publishVolume() reads first where the router forgot a growth before the volume was unpublished", async () => {
  const { store, deps, publish, unpublish, disk, methods } = remembering();
  await publish();
  const { comment, sizeBytes } = disk();
  const grown = 2n * sizeBytes;
  await expandVolume(deps, id, { requiredBytes: grown, limitBytes: 0n }, context);
  store.edit(id, { comment, sizeBytes });
  await unpublish();
  methods();
  assert.equal((await publish("b")).size, String(grown));
  assert.deepEqual(methods(), ["view", "change", "change"]);
  await unpublish("b");
  await publish("b");
  assert.deepEqual(methods(), ["change", "exportUnseen"], "as before, once the disk was grown to the image");
});

Deno.test("publishVolume() reads first where the router has forgotten a growth, and kept the record", async () => {
  const { store, deps, publish, disk, methods } = remembering();
  const { sizeBytes } = disk();
  const grown = 2n * sizeBytes;
  await expandVolume(deps, id, { requiredBytes: grown, limitBytes: 0n }, context);
  store.edit(id, { sizeBytes });
  methods();
  assert.equal((await publish()).size, String(grown));
  assert.deepEqual(methods(), ["exportUnseen", "change", "view", "change", "change", "change"]);
});

Deno.test("publishVolume() reads first where the router forgot a growth in use, and kept the record", async () => {
  const { store, deps, publish, unpublish, disk } = remembering();
  await publish();
  const { sizeBytes } = disk();
  const grown = 2n * sizeBytes;
  await expandVolume(deps, id, { requiredBytes: grown, limitBytes: 0n }, context);
  store.edit(id, { sizeBytes });
  await unpublish();
  assert.equal((await publish("b")).size, String(grown));
});

Deno.test("publishVolume() tells the router again to mount nothing", async () => {
  const { store, publish, methods, isOn, disk } = remembering();
  store.edit(id, { mayBeMounted: true });
  await publish();
  assert.deepEqual(methods(), ["exportUnseen"]);
  assert.ok(isOn());
  assert.equal(disk().mayBeMounted, undefined);
});

Deno.test("publishVolume() waits for the grace of the last withdrawal as after a read", async () => {
  const { publish, unpublish, methods, clock, isOn } = remembering({ unexportGraceMs: 30_000 });
  await publish();
  await unpublish();
  methods();
  const fromMs = clock.now();
  await publish("b");
  assert.deepEqual([methods(), clock.now() - fromMs >= 29_000], [["view", "view", "change"], true]);
  await unpublish("b");
  await clock.advance(30_000);
  methods();
  await publish("a");
  assert.deepEqual([methods(), isOn()], [["exportUnseen"], true]);
});

Deno.test("publishVolume() is not undone by a late repair of what it has read back before", async () => {
  const { store, publish, isOn } = remembering();
  store.edit(id, { routerUses: ["it is swap space"] });
  store.mishap("change", { late: true });
  await assert.rejects(publish(), refusal("precondition", /swap space/));
  store.edit(id, { routerUses: undefined });
  await publish();
  store.runLate();
  assert.ok(isOn());
});

Deno.test("publishVolume() reads a volume that a node holds, whoever asks for it", async () => {
  const { publish, methods, isOn } = remembering();
  await publish();
  methods();
  await publish();
  assert.deepEqual(methods(), ["view"], "held already");
  await assert.rejects(publish("b"), refusal("published-elsewhere"));
  assert.ok(isOn());
});
