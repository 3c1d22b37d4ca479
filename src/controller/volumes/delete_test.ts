import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { aCreate, inTime, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  aSnapshotId,
  plainImage,
  subvolumeImage,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { aClusterVolume, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import { createVolume } from "./create.ts";
import { deleteSnapshot } from "../snapshots/delete.ts";
import { deleteVolume } from "./delete.ts";
import { createSnapshot } from "../snapshots/create.ts";
import type { ControllerDeps, ControllerSettings } from "../deps.ts";

const context = testContext();
const epoch = { counter: 1, nonce: "0123abcd" };
const disk = aDisk(aRecord());
const { id, imagePath } = disk;
/** The volume as a plain file, and in a subvolume of its own. */
const layouts = { "a file": plainImage(id), "a subvolume": subvolumeImage(id) };
const remove = (deps: ControllerDeps) => deleteVolume(deps, id, context);

function controller(settings: Partial<ControllerSettings> = {}, imagePath = disk.imagePath) {
  const controller = testController(settings);
  controller.store.put({ ...disk, imagePath });
  return controller;
}

/** How much of everything the router has: disks, files with folders, and subvolumes. */
function counts({ disks, allFiles, tree }: FakeVolumeStore): number[] {
  return [disks.size, allFiles.size, tree.subvolumes.size];
}

for (const [layout, path] of Object.entries(layouts)) {
  Deno.test(`deleteVolume() leaves the disk while the pool of its image is not mounted: ${layout}`, async () => {
    const { store, deps } = controller({}, path);
    const pools = store.pools;
    store.pools = [];
    await assert.rejects(remove(deps), refusal("unavailable", /not mounted/));
    assert.ok(store.disks.has(id));
    store.pools = pools;
    await remove(deps);
    assert.equal(store.disks.has(id), false);
  });

  Deno.test(`deleteVolume() removes disk and image in two commands, and finds in two that they are gone: ${layout}`, async () => {
    const { deps, store } = controller({}, path);
    await remove(deps);
    assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["view", "remove"]);
    assert.deepEqual(counts(store), [0, 0, 0]);
    await remove(deps);
    assert.equal(store.takeCount(), 2);
  });

  Deno.test(`deleteVolume() ends what an earlier try left between disk and image: ${layout}`, async () => {
    const { deps, store } = controller({}, path);
    store.mishap("remove", { runs: "half" });
    store.mishap("removeImage", { runs: false });
    await assert.rejects(remove(deps), refusal("unavailable", /the image is still there/));
    assert.deepEqual([store.disks.size, store.allFiles.has(path)], [0, true]);
    await remove(deps);
    assert.deepEqual(counts(store), [0, 0, 0]);
  });

  Deno.test(`deleteVolume() removes the image that its own removal of the disk has left: ${layout}`, async () => {
    const { deps, store } = controller({}, path);
    store.mishap("remove", { runs: "half" });
    await remove(deps);
    assert.deepEqual(counts(store), [0, 0, 0]);
    assert.deepEqual(store.calls.map((call) => call.method), ["view", "remove", "removeImage"]);
  });

  Deno.test(`deleteVolume() never touches an image that another disk uses: ${layout}`, async () => {
    for (const present of [true, false]) {
      const { deps, store } = controller({}, path);
      store.put({ ...disk, imagePath: path, id: "other" });
      if (!present) store.disks.delete(id);
      await refusedUnchanged(store, () => remove(deps), refusal("precondition", /disk=other/));
    }
  });

  Deno.test(`deleteVolume() leaves an image whose other disk a router that has just booted may not show yet: ${layout}`, async () => {
    const { deps, store, clock } = controller({}, path);
    store.put({ ...disk, imagePath: path, id: "other", comment: "" });
    store.hidden.add("other");
    store.reboot();
    await refusedUnchanged(store, () => remove(deps), refusal("unavailable", /booted only/));
    store.hidden.clear();
    await clock.advance(120_000);
    await refusedUnchanged(store, () => remove(deps), refusal("precondition", /disk=other/));
  });

  Deno.test(`deleteVolume() leaves an image that another disk began to use in between: ${layout}`, async () => {
    const { deps, store } = controller({}, path);
    store.mishap("remove", { before: () => store.put({ ...disk, imagePath: path, id: "other" }) });
    await assert.rejects(remove(deps), refusal("precondition", /disk=other/));
    assert.ok(store.allFiles.has(path));
  });

  Deno.test(`deleteVolume() believes what is read back, however the command ended: ${layout}`, async () => {
    for (const ending of endings) {
      const [name, mishap] = ending;
      const { deps, store } = controller({}, path);
      store.mishap("remove", mishap);
      await endsAs(ending, remove(deps));
      await remove(deps);
      assert.deepEqual(counts(store), [0, 0, 0], name);
    }
  });
}

Deno.test("deleteVolume() looks for what is left in every allowed folder and takes only its own", async () => {
  const { deps, store } = testController({ basePaths: ["/pool/csi", "/pool/more"] });
  const filePrefix = `${id}.${testCluster}`;
  const own = [
    `/pool/csi/${filePrefix}.img`,
    `/pool/more/${filePrefix}.img`,
    `/pool/more/${filePrefix}.img.0123abcd.part`,
    `/pool/csi/${filePrefix}/disk.img`,
  ];
  const others = [
    `/pool/csi/${id}.ffffffff.img`,
    `/pool/csi/${id}.ffffffff/disk.img`,
    `/pool/csi/${id}.img`,
    `/pool/csi/x${filePrefix}.img`,
    `/pool/csi/${filePrefix}.img.bak`,
    `/pool/csi/${filePrefix}0/disk.img`,
    `/pool/other/${filePrefix}.img`,
    `/pool/other/${filePrefix}/disk.img`,
    `/pool/csi/deep/${filePrefix}.img`,
  ];
  for (const path of others) store.putImage(path, 1n);
  const before = store.snapshot();
  for (const path of own) store.putImage(path, 1n);
  await remove(deps);
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("deleteVolume() goes by the folder that the PersistentVolume names, too, which is no longer allowed", async () => {
  const cluster = new FakeClusterView();
  cluster.contexts.set(id, { volumePath: "/old/csi" });
  const { deps, store } = testController({}, 1, cluster);
  const left = `/old/csi/${id}.${testCluster}.img`;
  store.putImage(left, 1n);
  await refusedUnchanged(
    store,
    () => remove(deps),
    refusal("unavailable", /not mounted on the router: pool=old/),
  );
  store.pools = [...store.pools, { ...store.pools[0]!, mountPoint: "old" }];
  await remove(deps);
  assert.equal(store.allFiles.has(left), false);
});

Deno.test("deleteVolume() says that something is left when a folder of its name is no subvolume", async () => {
  const { deps, store } = testController();
  store.putFile(`/pool/csi/${id}.${testCluster}`, 0n, true);
  await assert.rejects(remove(deps), refusal("unavailable", /the image is still there/));
});

Deno.test("deleteVolume() removes no file that it did not ask about", async () => {
  const { deps, store } = testController();
  store.putFile("/pool/csi/precious.img");
  const reading = store.view.bind(store);
  store.view = async (...asked) => {
    const view = await reading(...asked);
    return { ...view, files: [...view.files, ...store.allFiles.values()] };
  };
  await remove(deps);
  assert.ok(store.allFiles.has("/pool/csi/precious.img"));
});

Deno.test("deleteVolume() refuses a published volume and names the holder", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a"), aHolder("b")] })));
  await refusedUnchanged(store, () => remove(deps), refusal("precondition", /published.*node=a, b/));
});

Deno.test("deleteVolume() refuses a disk of its own whose image has another name", async () => {
  for (
    const path of [
      "/pool/csi/precious.img",
      `/pool/csi/${id}.ffffffff.img`,
      `/pool/x${id}.${testCluster}.img`,
      `/pool/csi/${id}.ffffffff/disk.img`,
      `/pool/csi/${id}.${testCluster}0/disk.img`,
      `/pool/csi/${id}.${testCluster}/other.img`,
    ]
  ) {
    const { deps, store } = testController();
    store.put({ ...disk, imagePath: path });
    await refusedUnchanged(store, () => remove(deps), refusal("precondition", /a file of another name/));
  }
});

Deno.test("deleteVolume() does not remove a volume that was published in between", async () => {
  const { deps, store } = controller();
  const published = aDisk(aRecord({ epoch, holders: [aHolder("a")] }));
  store.mishap("remove", { before: () => store.put(published) });
  await assert.rejects(remove(deps), refusal("busy", /changed at the same time/));
  assert.deepEqual(store.disks.get(id), published);
  assert.ok(store.allFiles.has(imagePath));
});

Deno.test("deleteVolume() does not call a volume gone while that proves nothing", async () => {
  for (const trouble of ["young", "unmounted"] as const) {
    const { deps, store } = controller();
    const before = store.snapshot();
    store.hidden.add(id);
    if (trouble === "young") store.reboot();
    else store.pools = [];
    await assert.rejects(remove(deps), refusal("unavailable"), trouble);
    assert.deepEqual(store.snapshot(), before);
  }
});

Deno.test("deleteVolume() does not call an image gone whose pool went away with it", async () => {
  const { deps, store } = controller();
  store.mishap("remove", {
    runs: "half",
    after: () => {
      store.pools = [];
    },
  });
  await assert.rejects(remove(deps), refusal("unavailable", /not mounted/));
});

Deno.test("deleteVolume() leaves the snapshots and clones of the volume, and asks nothing about them where they are free", async () => {
  const { deps, store } = testController();
  store.tree.putSubvolume({ label: "pool-fs", path: "csi", readOnly: false, parent: undefined });
  store.put({ ...disk, imagePath: layouts["a subvolume"] });
  await createSnapshot(deps, { name: "s", source: id }, context);
  await createVolume(deps, aCreate("c", { source: { kind: "volume", id } }), context);
  const before = [...store.allFiles.keys()].filter((path) => !path.startsWith(`/pool/csi/${id}.`));
  store.takeCount();
  await remove(deps);
  assert.deepEqual(store.calls.map((call) => call.method), ["view", "remove"]);
  assert.deepEqual([...store.allFiles.keys()], before);
});

Deno.test("deleteVolume() does not call a volume gone whose router has booted since its disk was removed", async () => {
  const { deps, store, clock } = controller();
  store.mishap("remove", { after: () => store.reboot() });
  await assert.rejects(remove(deps), refusal("unavailable", /booted only/));
  await clock.advance(120_000);
  await remove(deps);
  assert.deepEqual(counts(store), [0, 0, 0]);
});

Deno.test("deleteVolume() says so when the router keeps a subvolume of which nobody knew that it would", async () => {
  const { deps, store } = testController();
  store.tree.putSubvolume({ label: "pool-fs", path: "csi", readOnly: false, parent: undefined });
  store.put({ ...disk, imagePath: layouts["a subvolume"] });
  await createSnapshot(deps, { name: "s", source: id }, context);
  store.tree.holdsParents = true;
  const kept = refusal("unavailable", /the image is still there: .*answered "failure: it has snapshots"/);
  await assert.rejects(remove(deps), kept);
  await assert.rejects(remove(deps), kept);
  await deleteSnapshot(deps, aSnapshotId("s"), context);
  await remove(deps);
  assert.deepEqual(counts(store), [0, 1, 1]);
});

Deno.test("deleteVolume() withdraws an export that nobody holds and waits out the grace", async () => {
  const { deps, store, clock } = testController();
  store.lingerMs = 10_000;
  store.put(aDisk(aRecord({ epoch }), { exported: true }));
  await inTime(clock, remove(deps));
  assert.deepEqual([counts(store), store.violations], [[0, 0, 0], []]);
  assert.deepEqual(store.calls.map((call) => call.method), ["view", "change", "view", "remove"]);
});

Deno.test("deleteVolume() withdraws once more what a person exports while it waits out the grace", async () => {
  const { deps, store, clock } = testController();
  store.lingerMs = 10_000;
  store.put(aDisk(aRecord({ epoch }), { exported: true }));
  const deleted = remove(deps);
  await clock.advance(2_000);
  store.edit(id, { exported: true });
  await inTime(clock, deleted);
  assert.deepEqual([counts(store), store.violations], [[0, 0, 0], []]);
});

Deno.test("deleteVolume() says at once that the grace outlasts the call", async () => {
  const { deps, store, clock } = testController();
  store.put(aDisk(aRecord({ epoch, withdrawnAtSeconds: clock.now() / 1000 - 1 })));
  const short = testContext({ deadlineMs: clock.now() + 5_000 });
  await assert.rejects(deleteVolume(deps, id, short), refusal("unavailable", /try again in 10 s/));
  assert.deepEqual([store.disks.size, store.calls.length, clock.waiting], [1, 1, 0]);
});

Deno.test("deleteVolume() touches nothing while several PersistentVolumes name the volume", async () => {
  const view = new FakeClusterView();
  const { store, deps } = testController({}, 1, view);
  store.put(disk);
  view.used = [
    aClusterVolume(id, { name: "pv-b" }),
    aClusterVolume(id, { name: "pv-a" }),
    aClusterVolume("c"),
  ];
  await assert.rejects(remove(deps), refusal("precondition", /persistentvolumes=pv-a, pv-b; .*Retain/));
  assert.equal(store.takeCount(), 0);
  view.used = view.used.slice(1);
  await remove(deps);
  assert.equal(store.disks.has(id), false);
});
