import assert from "node:assert/strict";
import type { NewVolume } from "../../src/volume/ports.ts";
import { FakeClock } from "./clock.ts";
import { inTime, testContext } from "./controller_world.ts";
import { refusal } from "./refusal.ts";
import { FakeVolumeStore } from "./volume_store.ts";

const imagePath = "/pool/csi/v.img";
const volume: NewVolume = { id: "v", imagePath, sizeBytes: 9n, comment: "one", makeFolder: "/pool/csi" };
const context = testContext();
const nqn = (text: string) => ({ export: { nqn: text, port: 4420 } });

/** A router with the volume on it. */
async function router() {
  const clock = new FakeClock();
  const store = new FakeVolumeStore(clock);
  await store.add(volume, context);
  return { clock, store };
}

Deno.test("FakeVolumeStore adds, changes and removes, and shows each as it is", async () => {
  const { store } = await router();
  const added = await store.view("v", [imagePath], context);
  assert.deepEqual(added.volume, {
    id: "v",
    imagePath,
    sizeBytes: 9n,
    comment: "one",
    exported: false,
    exportNqn: "",
    exportPort: 0,
  });
  assert.deepEqual(added.files, [{ path: imagePath, sizeBytes: 9n, directory: false }]);
  const changed = await store.change("v", "one", { comment: "two", sizeBytes: 10n, ...nqn("q") }, context);
  assert.equal(changed.after.volume?.exportNqn, "q");
  assert.deepEqual((await store.inventory(context)).volumes, [changed.after.volume]);
  const removed = await store.remove("v", "two", imagePath, context);
  assert.deepEqual([removed.after.volume, removed.after.files, removed.refusal], [undefined, [], undefined]);
  assert.equal(store.takeCount(), 5);
  assert.equal(store.takeCount(), 0);
});

Deno.test("FakeVolumeStore changes and removes nothing whose comment is another", async () => {
  const { store } = await router();
  const before = store.snapshot();
  assert.equal((await store.change("v", "zero", { comment: "two" }, context)).after.volume?.comment, "one");
  assert.equal((await store.remove("v", "zero", imagePath, context)).after.files.length, 1);
  assert.equal(
    (await store.remove("v", undefined, imagePath, context)).after.files.length,
    1,
    "the disk uses it",
  );
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("FakeVolumeStore refuses a slot twice, also over hardware, and a folder that is not there", async () => {
  const { store } = await router();
  store.hardware.set("nvme1", "hardware");
  const there = { ...volume, imagePath: "/pool/csi/w.img" };
  assert.match((await store.add(there, context)).refusal ?? "", /already/);
  assert.match((await store.add({ ...there, id: "nvme1" }, context)).refusal ?? "", /already/);
  const nowhere = { id: "w", imagePath: "/pool/new/w.img", sizeBytes: 1n, comment: "" };
  assert.match((await store.add(nowhere, context)).refusal ?? "", /no such directory/);
  assert.deepEqual((await store.view("nvme1", [], context)).foreign, { id: "nvme1", kind: "hardware" });
});

Deno.test("FakeVolumeStore lets a mishap befall one command and no other", async () => {
  const { store } = await router();
  store.mishap("change", { runs: false });
  assert.equal((await store.change("v", "one", { comment: "two" }, context)).after.volume?.comment, "one");
  store.mishap("change", { refusal: "no" });
  const refused = await store.change("v", "one", { comment: "two" }, context);
  assert.deepEqual([refused.refusal, refused.after.volume?.comment], ["no", "one"]);
  store.mishap("change", { unreadable: true });
  await assert.rejects(store.change("v", "one", { comment: "two" }, context), refusal("unavailable"));
  assert.equal(store.disks.get("v")?.comment, "two", "it ran");
  store.mishap("change", { runs: false, unreadable: true });
  await assert.rejects(store.change("v", "two", { comment: "three" }, context), refusal("unavailable"));
  store.mishap("view", { unreadable: true });
  store.clearMishaps();
  assert.equal((await store.view("v", [], context)).volume?.comment, "two", "it did not run");
});

Deno.test("FakeVolumeStore lets others edit before a command and after it", async () => {
  const { store } = await router();
  store.mishap("change", { before: () => store.edit("v", { comment: "mine" }) });
  assert.equal((await store.change("v", "one", { comment: "two" }, context)).after.volume?.comment, "mine");
  store.mishap("change", { after: () => store.edit("v", { exported: false }) });
  assert.equal((await store.change("v", "mine", nqn("q"), context)).after.volume?.exported, false);
});

Deno.test("FakeVolumeStore can leave the image of a removed disk, and run a command late", async () => {
  const { store } = await router();
  store.mishap("change", { late: true });
  assert.equal((await store.change("v", "one", { comment: "two" }, context)).after.volume?.comment, "one");
  store.runLate();
  store.mishap("remove", { runs: "half" });
  const { after } = await store.remove("v", "two", imagePath, context);
  assert.deepEqual([after.volume, after.files.length], [undefined, 1]);
});

Deno.test("FakeVolumeStore hides late disks and the files of a pool that is not mounted", async () => {
  const { store, clock } = await router();
  store.hidden.add("v");
  store.pools = [];
  store.reboot();
  await clock.advance(5_000);
  const view = await store.view("v", [imagePath], context);
  assert.deepEqual([view.volume, view.files, view.pools, view.upMs], [undefined, [], [], 5_000]);
});

Deno.test("FakeVolumeStore keeps to the call's deadline and its end", async () => {
  const { store, clock } = await router();
  store.mishap("view", { takesMs: 2_000 });
  const slow = store.view("v", [], testContext({ deadlineMs: clock.now() + 1_000 }));
  await assert.rejects(inTime(clock, slow), refusal("deadline"));
  await assert.rejects(
    store.view("v", [], testContext({ signal: AbortSignal.abort(new Error("gone")) })),
    /gone/,
  );
});

Deno.test("FakeVolumeStore tells through which NQNs an image can be written", async () => {
  const { store, clock } = await router();
  store.lingerMs = 3_000;
  await store.change("v", "one", nqn("q1"), context);
  await store.change("v", "one", { export: false }, context);
  assert.deepEqual(store.reachable(imagePath), ["q1"]);
  await clock.advance(3_000);
  assert.deepEqual(store.reachable(imagePath), []);
  assert.deepEqual(store.violations, []);
});

Deno.test("FakeVolumeStore notes what must never happen", async () => {
  const { store } = await router();
  store.lingerMs = 3_000;
  await store.change("v", "one", nqn("q1"), context);
  await store.change("v", "one", nqn("q2"), context);
  await store.change("v", "one", { sizeBytes: 1n }, context);
  await store.remove("v", "one", imagePath, context);
  store.putFile(imagePath);
  await store.add(volume, context);
  assert.deepEqual(store.violations, [
    `${imagePath} through q2 and q1`,
    "v was made smaller",
    `${imagePath} through q2 and q1`,
    `${imagePath} went while it could be reached`,
    `v adopted the data in ${imagePath}`,
  ]);
});
