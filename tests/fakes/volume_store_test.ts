import assert from "node:assert/strict";
import { placeOf, plainPlace, subvolumePlace } from "../../src/volume/model/layout.ts";
import type { NewVolume } from "../../src/volume/ports/ports.ts";
import { FakeClock } from "./clock.ts";
import { inTime, testContext } from "./controller_world.ts";
import { refusal } from "./refusal.ts";
import { FakeVolumeStore } from "./volume_store.ts";

const stem = "v.0a";
const imagePath = `/pool/csi/${stem}.img`;
const place = plainPlace(imagePath);
const makeFolder = { path: "/pool/csi", label: "pool-fs" };
const volume: NewVolume = { id: "v", place, sizeBytes: 9n, comment: "one", makeFolder };
const one = { id: "v", comment: "one" };
const context = testContext();
const nqn = (text: string) => ({ export: { nqn: text, port: 4420 } });

/** A router with the volume on it. */
async function router() {
  const clock = new FakeClock();
  const store = new FakeVolumeStore(clock);
  await store.add(volume, context);
  return { clock, store };
}

const inner = subvolumePlace("/pool/csi/w.0a", "pool-fs");
const snapshot = subvolumePlace("/pool/csi/snap-1.w.x.n.0a", "pool-fs");
const inSubvolume: NewVolume = {
  id: "w",
  place: inner,
  subvolume: { ...inner.subvolume!, readOnly: false },
  sizeBytes: 9n,
  comment: "one",
};

/** A router with a volume in a subvolume, and a read-only snapshot of that. */
async function withSnapshot() {
  const { clock, store } = await router();
  await store.add(inSubvolume, context);
  store.tree.contents.set(inner.path, "data");
  const frozen = { ...snapshot.subvolume!, parent: inner.subvolume!, readOnly: true };
  await store.addSubvolume(frozen, "/snap-1.", context);
  return { clock, store };
}

Deno.test("FakeVolumeStore adds, changes and removes, and shows each as it is", async () => {
  const { store } = await router();
  const added = await store.view("v", stem, context);
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
  assert.equal(store.allFiles.get(imagePath)?.sizeBytes, 10n);
  assert.deepEqual((await store.inventory(context)).volumes, [changed.after.volume]);
  const two = { id: "v", comment: "two" };
  const removed = await store.remove(two, place, stem, context);
  assert.deepEqual([removed.after.volume, removed.after.files, removed.refusal], [undefined, [], undefined]);
  assert.equal(store.takeCount(), 5);
  assert.equal(store.takeCount(), 0);
});

Deno.test("FakeVolumeStore changes and removes nothing whose comment is another, and no image in use", async () => {
  const { store } = await router();
  const before = store.snapshot();
  assert.equal((await store.change("v", "zero", { comment: "two" }, context)).after.volume?.comment, "one");
  const other = { id: "v", comment: "zero" };
  assert.equal((await store.remove(other, place, stem, context)).after.files.length, 1);
  assert.equal((await store.removeImage(place, stem, context)).after.files.length, 1, "the disk uses it");
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("FakeVolumeStore adds nothing to a slot or an image that is taken, also by hardware", async () => {
  const { store } = await router();
  store.hardware.set("nvme1", "hardware");
  const before = store.snapshot();
  const there = { ...volume, place: plainPlace("/pool/csi/w.img") };
  for (const added of [there, { ...there, id: "nvme1" }, { ...volume, id: "w", sizeBytes: undefined }]) {
    assert.equal((await store.add(added, context)).refusal, undefined);
  }
  assert.deepEqual(store.snapshot(), before);
  assert.deepEqual((await store.view("nvme1", "", context)).foreign, { id: "nvme1", kind: "hardware" });
});

Deno.test("FakeVolumeStore refuses what has no folder or no pool", async () => {
  const { store } = await router();
  const nowhere = { id: "w", place: plainPlace("/pool/new/w.img"), sizeBytes: 1n, comment: "" };
  assert.match((await store.add(nowhere, context)).refusal ?? "", /no such directory/);
  store.pools = [];
  assert.match((await store.add(inSubvolume, context)).refusal ?? "", /no such file system/);
});

Deno.test("FakeVolumeStore shows every file of a stem, and who else uses one", async () => {
  const { store } = await router();
  store.put({ ...store.disks.get("v")!, id: "other", imagePath: `/pool/csi/${stem}/disk.img` });
  const view = await store.view("v", stem, context);
  assert.deepEqual(view.sharers.map(({ id }) => id), ["other"]);
  const paths = [imagePath, `/pool/csi/${stem}`, `/pool/csi/${stem}/disk.img`];
  assert.deepEqual(view.files.map(({ path }) => path), paths);
  assert.deepEqual((await store.files(`/${stem}/`, context)).files.map(({ path }) => path), paths.slice(2));
});

Deno.test("FakeVolumeStore shows a create its stem, its folder and all snapshots", async () => {
  const { store } = await withSnapshot();
  const wanted = { id: "v", stem, folder: "/pool/csi" };
  const paths = async (what: typeof wanted | undefined) =>
    (await store.createView(what, context)).files.map(({ path }) => path);
  const snapshots = ["/pool/csi/snap-1.w.x.n.0a", snapshot.path];
  assert.deepEqual(await paths(wanted), ["/pool/csi", imagePath, ...snapshots]);
  assert.deepEqual(await paths(undefined), snapshots);
});

Deno.test("FakeVolumeStore makes a subvolume with a new image, and a snapshot with a copy of it", async () => {
  const { store } = await withSnapshot();
  const { subvolume } = inner;
  assert.deepEqual(await store.subvolume(subvolume!, context), { readOnly: false, parentName: "" });
  assert.deepEqual(await store.subvolume(snapshot.subvolume!, context), {
    readOnly: true,
    parentName: "w.0a",
  });
  store.tree.contents.set(inner.path, "newer");
  const clone = subvolumePlace("/pool/csi/c.0a", "pool-fs");
  const outcome = await store.add({
    id: "c",
    place: clone,
    subvolume: { ...clone.subvolume!, parent: snapshot.subvolume!, readOnly: false },
    sizeBytes: undefined,
    comment: "",
  }, context);
  assert.equal(outcome.after.volumes.find(({ id }) => id === "c")?.sizeBytes, 9n);
  assert.equal(store.tree.contents.get(clone.path), "data");
  assert.deepEqual(store.violations, []);
});

Deno.test("FakeVolumeStore makes no subvolume where a path holds the text, or there is no parent", async () => {
  const { store } = await withSnapshot();
  const again = { ...snapshot.subvolume!, parent: inner.subvolume!, readOnly: true };
  const before = store.snapshot();
  const second = await store.addSubvolume({ ...again, path: "csi/snap-1.w.y.n.0a" }, "/snap-1.", context);
  assert.deepEqual([second.refusal, second.after.files.length], [undefined, 2]);
  const orphan = { ...again, path: "csi/snap-2", parent: { label: "pool-fs", path: "csi/none" } };
  assert.match((await store.addSubvolume(orphan, "/snap-2", context)).refusal ?? "", /no such parent/);
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("FakeVolumeStore removes a subvolume with its image, and not while a disk is in it", async () => {
  const { store } = await withSnapshot();
  const part = "/w.0a";
  assert.equal((await store.removeImage(inner, part, context)).after.files.length, 2);
  const { after } = await store.remove({ id: "w", comment: "one" }, inner, "/w.0a", context);
  assert.deepEqual([after.volume, after.files], [undefined, []]);
  assert.equal(await store.subvolume(inner.subvolume!, context), undefined);
  assert.deepEqual((await store.removeImage(snapshot, "/snap-1.", context)).after.files, []);
});

Deno.test("FakeVolumeStore can refuse to remove a subvolume that has snapshots", async () => {
  const { store } = await withSnapshot();
  store.tree.holdsParents = true;
  const { after, refusal } = await store.remove({ id: "w", comment: "one" }, inner, "/w.0a", context);
  assert.match(refusal ?? "", /snapshots/);
  assert.deepEqual([after.volume, after.files.length], [undefined, 2]);
});

const copy = `${imagePath}.00ff00ff.part`;
const target = plainPlace("/pool/csi/u.0a.img");
const copied: NewVolume = {
  id: "u",
  place: target,
  sizeBytes: undefined,
  comment: "",
  copied: { path: copy },
};

Deno.test("FakeVolumeStore copies, renames and adds what was copied", async () => {
  const { store } = await router();
  store.tree.contents.set(imagePath, "data");
  assert.deepEqual(await store.copyFile(imagePath, copy, context), { done: true });
  assert.deepEqual(await store.copyFile(imagePath, copy, context), { done: false }, "it is not free");
  const { after } = await store.add(copied, context);
  assert.equal(after.volumes.find(({ id }) => id === "u")?.sizeBytes, 9n);
  assert.equal(store.tree.contents.get(target.path), "data");
  assert.equal(store.allFiles.has(copy), false);
  assert.deepEqual(store.violations, []);
});

Deno.test("FakeVolumeStore leaves a copy whose guard does not hold or whose place is taken, and adds nothing", async () => {
  const { store } = await router();
  await store.copyFile(imagePath, copy, context);
  store.edit("v", { comment: "two" });
  const renamed = await store.renameFile(copy, target.path, one, "/u.0a", context);
  assert.deepEqual(renamed.after.files, []);
  store.putFile(target.path, 5n);
  await store.add(copied, context);
  assert.equal(store.disks.has("u"), false);
  await store.renameFile(copy, "/pool/csi/x.img", undefined, "/x", context);
  assert.ok(store.allFiles.has("/pool/csi/x.img"));
});

Deno.test("FakeVolumeStore tells of a copy that was refused, or whose end is unknown, that it is not done", async () => {
  const { store } = await router();
  store.mishap("copyFile", { refusal: "no" });
  assert.deepEqual(await store.copyFile(imagePath, copy, context), { done: false, refusal: "no" });
  store.mishap("copyFile", { runs: "half", unreadable: true });
  assert.deepEqual(await store.copyFile(imagePath, copy, context), { done: false });
  assert.ok(store.allFiles.has(copy));
});

Deno.test("FakeVolumeStore names exports after their slots where it cannot fence, and says so", async () => {
  const { store } = await router();
  store.unfenced = true;
  const { after } = await store.change("v", "one", nqn("q"), context);
  assert.deepEqual([after.volume?.exportNqn, after.unfenced], ["v", true]);
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
  assert.equal((await store.view("v", stem, context)).volume?.comment, "two", "it did not run");
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
  const { after } = await store.remove({ id: "v", comment: "two" }, place, stem, context);
  assert.deepEqual([after.volume, after.files.length], [undefined, 1]);
  assert.deepEqual((await store.removeImage(place, stem, context)).after.files, []);
});

Deno.test("FakeVolumeStore hides late disks and what lies on a pool that is not mounted", async () => {
  const { store, clock } = await withSnapshot();
  store.hidden.add("v");
  store.pools = [];
  store.reboot();
  await clock.advance(5_000);
  const view = await store.view("v", stem, context);
  assert.deepEqual([view.volume, view.files, view.pools, view.upMs], [undefined, [], [], 5_000]);
  assert.equal(await store.subvolume(snapshot.subvolume!, context), undefined);
  const before = store.snapshot();
  await store.removeImage(snapshot, "/snap-1.", context);
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("FakeVolumeStore keeps to the call's deadline and its end", async () => {
  const { store, clock } = await router();
  store.mishap("view", { takesMs: 2_000 });
  const slow = store.view("v", stem, testContext({ deadlineMs: clock.now() + 1_000 }));
  await assert.rejects(inTime(clock, slow), refusal("deadline"));
  await assert.rejects(
    store.view("v", stem, testContext({ signal: AbortSignal.abort(new Error("gone")) })),
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
  await store.remove(one, place, stem, context);
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

Deno.test("FakeVolumeStore notes what must never happen to subvolumes and copies", async () => {
  const { store, clock } = await withSnapshot();
  store.lingerMs = 3_000;
  await store.change("w", "one", nqn("q1"), context);
  await store.change("w", "one", { export: false }, context);
  await store.remove({ id: "w", comment: "one" }, inner, "/w.0a", context);
  const frozen = { id: "s", place: placeOf(snapshot.path, store.pools), sizeBytes: undefined, comment: "" };
  await store.add(frozen, context);
  await store.change("s", "", { sizeBytes: 10n }, context);
  await store.change("s", "", nqn("q2"), context);
  store.tree.contents.set(imagePath, "first");
  store.mishap("copyFile", { takesMs: 2_000 });
  const copying = store.copyFile(imagePath, copy, context);
  await clock.advance(1_000);
  store.tree.contents.set(imagePath, "second");
  assert.deepEqual(await inTime(clock, copying), { done: true });
  await store.add(copied, context);
  assert.deepEqual(store.violations, [
    `${inner.path} went while it could be reached`,
    `${snapshot.path} is read-only, and was grown`,
    `${snapshot.path} is read-only, and was exported`,
    "u uses a copy that is not whole",
  ]);
});
