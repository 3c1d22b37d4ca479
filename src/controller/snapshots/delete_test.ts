import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { aCreate, gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord, aSnapshotId, testBase, testCluster } from "../../../tests/fakes/records.ts";
import type { Mishap } from "../../../tests/fakes/mishap.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import { createVolume } from "../volumes/create.ts";
import { deleteSnapshot } from "./delete.ts";
import { deleteVolume } from "../volumes/delete.ts";
import { createSnapshot } from "./create.ts";
import type { ControllerDeps, ControllerSettings } from "../deps.ts";

const context = testContext();
const id = aSnapshotId("s");
const pathOf = (end: string, cluster = testCluster, base = testBase, one = id) =>
  `${base}/${one}.pvc-1.1.n.${cluster}${end}`;
const forms = { "a subvolume": "/disk.img", "a file": ".img", "an unfinished copy": ".img.0123abcd.part" };
const remove = (deps: ControllerDeps) => deleteSnapshot(deps, id, context);

/** A controller on a router that has the folder of its volumes. */
function controller(settings: Partial<ControllerSettings> = {}) {
  const { store, deps, ...rest } = testController(settings);
  store.tree.putSubvolume({ label: "pool-fs", path: "csi", readOnly: false, parent: undefined });
  return { store, deps, ...rest };
}

for (const [form, end] of Object.entries(forms)) {
  Deno.test(`deleteSnapshot() removes ${form} in two commands, and is done in one when it is gone`, async () => {
    const { store, deps } = controller();
    const before = store.snapshot();
    store.putImage(pathOf(end), gibibyte);
    await remove(deps);
    assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["files", "removeImage"]);
    assert.deepEqual(store.snapshot(), before);
    await remove(deps);
    assert.equal(store.takeCount(), 1);
  });

  Deno.test(`deleteSnapshot() believes what is read back, however the removal of ${form} ended`, async () => {
    for (const ending of endings) {
      const [name, mishap] = ending;
      const { store, deps } = controller();
      const before = store.snapshot();
      store.putImage(pathOf(end), gibibyte);
      store.mishap("removeImage", mishap);
      await endsAs(ending, remove(deps));
      await remove(deps);
      assert.deepEqual(store.snapshot(), before, name);
    }
  });

  Deno.test(`deleteSnapshot() does not call ${form} gone while that proves nothing`, async () => {
    for (const trouble of ["young", "unmounted", "another pool away"] as const) {
      const { store, deps } = controller({ basePaths: [testBase, "/fast/csi"] });
      if (trouble !== "another pool away") {
        store.pools = [...store.pools, { ...store.pools[0]!, mountPoint: "fast", subvolumeLabel: "fast-fs" }];
      }
      store.putImage(pathOf(end), gibibyte);
      if (trouble === "young") store.reboot();
      if (trouble === "unmounted") {
        store.pools = store.pools.filter(({ mountPoint }) => mountPoint === "fast");
      }
      await refusedUnchanged(store, () => remove(deps), refusal("unavailable"), trouble);
    }
  });

  Deno.test(`deleteSnapshot() does not call ${form} gone whose pool went away with it`, async () => {
    const { store, deps } = controller();
    store.putImage(pathOf(end), gibibyte);
    store.mishap("removeImage", {
      runs: false,
      after: () => {
        store.pools = [];
      },
    });
    await assert.rejects(remove(deps), refusal("unavailable", /not mounted/));
  });
}

Deno.test("deleteSnapshot() removes all that is there of a snapshot, in every allowed folder", async () => {
  const { store, deps } = controller({ basePaths: [testBase, "/pool/more"] });
  const before = store.snapshot();
  for (const end of Object.values(forms)) store.putImage(pathOf(end), 1n);
  store.putImage(pathOf(".img", testCluster, "/pool/more"), 1n);
  store.putImage(`${testBase}/${id}.pvc-2.zz.b.${testCluster}/disk.img`, 1n);
  store.tree.putSubvolume({
    label: "pool-fs",
    path: `csi/${id}.pvc-1.2.n.${testCluster}`,
    readOnly: true,
    parent: undefined,
  });
  await remove(deps);
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("deleteSnapshot() takes nothing else: another cluster's, another one, what lies elsewhere", async () => {
  const { store, deps } = controller();
  const others = [
    pathOf("/disk.img", "ffffffff"),
    pathOf(".img", "ffffffff"),
    pathOf(".img", testCluster, testBase, aSnapshotId("t")),
    pathOf(".img", testCluster, "/pool/backup"),
    pathOf("/disk.img", testCluster, "/pool/backup"),
    pathOf(".img.bak"),
    pathOf(".img.part"),
    `${testBase}/${id}.img`,
    `${testBase}/pvc-1.${testCluster}/disk.img`,
  ];
  for (const path of others) store.putImage(path, 1n);
  const before = store.snapshot();
  await remove(deps);
  assert.equal(store.takeCount(), 1);
  store.putImage(pathOf("/disk.img"), 1n);
  await remove(deps);
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("deleteSnapshot() removes no file that it did not ask about", async () => {
  const { store, deps } = controller();
  store.putFile("/pool/csi/precious.img");
  const before = store.snapshot();
  const reading = store.files.bind(store);
  store.files = async (...asked) => {
    const view = await reading(...asked);
    return { ...view, files: [...view.files, ...store.allFiles.values()] };
  };
  await remove(deps);
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("deleteSnapshot() leaves an image that somebody made a disk of", async () => {
  for (const end of ["/disk.img", ".img"]) {
    const { store, deps } = controller();
    store.put(aDisk(aRecord(), { id: "mine", imagePath: pathOf(end), comment: "" }));
    await refusedUnchanged(store, () => remove(deps), refusal("unavailable", /still there/));
  }
});

Deno.test("deleteSnapshot() leaves the volume and what was restored from the snapshot", async () => {
  const { store, deps } = controller();
  store.put(aDisk(aRecord()));
  await createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  await createVolume(deps, aCreate("c", { source: { kind: "snapshot", id } }), context);
  await remove(deps);
  assert.deepEqual([...store.disks.keys()], ["pvc-1", volumeIdFor("c")]);
  for (const disk of store.disks.values()) assert.ok(store.allFiles.has(disk.imagePath));
});

Deno.test("a router that keeps a subvolume with snapshots keeps it, whole, until they are deleted", async () => {
  const { store, deps } = controller();
  store.tree.holdsParents = true;
  store.put(aDisk(aRecord()));
  await createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  await createVolume(deps, aCreate("c", { source: { kind: "snapshot", id } }), context);
  await createVolume(deps, aCreate("d", { source: { kind: "volume", id: "pvc-1" } }), context);
  const files = [...store.allFiles.keys()];
  await assert.rejects(remove(deps), refusal("unavailable", /volumes were made from it/));
  await assert.rejects(
    deleteVolume(deps, "pvc-1", context),
    refusal("unavailable", /has snapshots or clones/),
  );
  assert.deepEqual([...store.allFiles.keys()], files);
  await deleteVolume(deps, volumeIdFor("c"), context);
  await remove(deps);
  await assert.rejects(deleteVolume(deps, "pvc-1", context), refusal("unavailable"));
  await deleteVolume(deps, volumeIdFor("d"), context);
  await deleteVolume(deps, "pvc-1", context);
  assert.deepEqual([...store.allFiles.keys()], [testBase]);
});

Deno.test("createSnapshot() does not answer OK for what an earlier removal may still take away", async () => {
  const { store, deps, clock } = controller();
  store.put(aDisk(aRecord()));
  const create = () => createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  const first = await create();
  store.mishap("removeImage", { late: true, unreadable: true });
  await assert.rejects(remove(deps), refusal("unavailable"));
  await assert.rejects(create(), refusal("busy", /a recent deletion of it/));
  await clock.advance(600_000);
  assert.deepEqual(await create(), first);

  store.mishap("removeImage", { runs: false });
  await assert.rejects(remove(deps), refusal("unavailable"));
  await remove(deps);
  await clock.advance(1_000);
  const second = await create();
  store.runLate();
  assert.equal(store.allFiles.has(second.imagePath), true);
});

Deno.test("createSnapshot() makes nothing at a path that an earlier removal may still take away", async () => {
  const { store, deps, clock } = controller();
  store.put(aDisk(aRecord()));
  const create = () => createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  await create();
  store.mishap("removeImage", { late: true, unreadable: true });
  await assert.rejects(remove(deps), refusal("unavailable"));
  await remove(deps);
  await assert.rejects(create(), refusal("busy", /its removal a moment ago/), "of the same second");
  await clock.advance(1_000);
  const { imagePath } = await create();
  store.runLate();
  assert.ok(store.allFiles.has(imagePath));
});

Deno.test("createSnapshot() does not answer OK for what the removal of an earlier controller may still take away", async () => {
  const { store, deps, clock } = controller();
  store.put(aDisk(aRecord()));
  const create = (name = "s") => createSnapshot(deps, { name, source: "pvc-1" }, context);
  const first = await create();
  deps.memory.inDoubt.suspectOthers();
  await assert.rejects(create(), refusal("busy", /the previous controller may have sent its removal/));
  const own = await create("t");
  assert.deepEqual(await create("t"), own, "what this controller has made nobody else has seen");
  await clock.advance(600_000);
  assert.deepEqual(await create(), first);
});

Deno.test("a snapshot is made again once its removal has ended, and not while that may still happen", async () => {
  const pools = controller().store.pools;
  const endings: readonly (readonly [string, Mishap, made: boolean])[] = [
    ["ended", {}, true],
    ["gone, and perhaps not ended", { refusal: "action timed out", runs: true }, false],
    ["not done", { runs: false }, false],
    ["gone with its pool", { after: () => void (current!.pools = []) }, false],
  ];
  let current: FakeVolumeStore | undefined;
  for (const [what, mishap, isMade] of endings) {
    const { store, deps } = controller();
    current = store;
    store.put(aDisk(aRecord()));
    const make = () => createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
    await make();
    store.mishap("removeImage", mishap);
    const removed = remove(deps);
    if (isMade || mishap.refusal !== undefined) await removed;
    else await assert.rejects(removed, refusal("unavailable"), what);
    store.pools = pools;
    if (isMade) await make();
    else await assert.rejects(make(), refusal("busy", /may still happen/), what);
  }
});
