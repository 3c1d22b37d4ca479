import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  aSnapshotId,
  subvolumeImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { VolumeErrorKind } from "../../volume/errors.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import { snapshotIdFor } from "../../volume/model/snapshots/snapshots.ts";
import { deleteSnapshot } from "./delete.ts";
import { deleteVolume } from "../volumes/delete.ts";
import { createSnapshot } from "./create.ts";
import type { ControllerSettings } from "../deps.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };
const id = aSnapshotId("s");

/** A controller on a Btrfs router that has the volume `pvc-1`. */
function controller(
  settings: Partial<ControllerSettings> = {},
  record: Partial<VolumeRecord> = { epoch },
  disk: Partial<StoredVolume> = {},
) {
  const { store, deps, ...rest } = testController(settings);
  const source = aDisk(aRecord(record), disk);
  store.tree.putSubvolume({ label: "pool-fs", path: "csi", readOnly: false, parent: undefined });
  store.put(source);
  store.tree.contents.set(source.imagePath, "data");
  const snapshot = (name = "s", source = "pvc-1") => createSnapshot(deps, { name, source }, context);
  const snapshots = () => [...store.tree.subvolumes.values()].filter(({ path }) => path.includes("snap-"));
  return { store, deps, snapshot, snapshots, ...rest };
}

/** Where a snapshot of that time would lie. */
function pathAt(createdAtSeconds: number): string {
  return `${testBase}/${id}.pvc-1.${createdAtSeconds.toString(36)}.n.${testCluster}`;
}

Deno.test("createSnapshot() answers nothing as made that it may still take back", async () => {
  const { store, snapshot, snapshots, clock } = controller({}, { epoch }, { sizeBytes: 40n * gibibyte });
  const other = aDisk(aRecord(), { id: "other", sizeBytes: 30n * gibibyte, imagePath: "/pool/x.img" });
  store.mishap("addSubvolume", { after: () => store.put(other) });
  store.mishap("removeImage", { late: true, unreadable: true });
  await assert.rejects(snapshot(), refusal("unavailable"));
  await assert.rejects(snapshot(), refusal("busy", /may still happen/));
  store.runLate();
  assert.deepEqual(snapshots(), []);
  store.disks.delete("other");
  await clock.advance(1_000);
  assert.equal((await snapshot()).ready, true);
  await clock.advance(600_000);
  assert.equal((await snapshot()).ready, true);
});

Deno.test("createSnapshot() calls nothing blank that is published in between", async () => {
  const { store, snapshot, snapshots } = controller({}, { epoch: { counter: 0, nonce: "0123abcd" } });
  const published = aDisk(aRecord({ epoch: { counter: 1, nonce: "0123abcd" }, holders: [aHolder("a")] }));
  store.mishap("addSubvolume", { before: () => store.edit("pvc-1", published) });
  await assert.rejects(snapshot(), refusal("unavailable", /nor its volume change meanwhile/));
  assert.deepEqual(snapshots(), []);
  assert.equal((await snapshot()).blank, false);
});

Deno.test("createSnapshot() freezes a subvolume in three commands, and in one when it is there", async () => {
  const { store, snapshot, snapshots, clock } = controller();
  const made = await snapshot();
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), [
    "createView",
    "addSubvolume",
    "createView",
  ]);
  const createdAtSeconds = Math.floor(clock.now() / 1000);
  assert.deepEqual(made, {
    id,
    source: "pvc-1",
    createdAtSeconds,
    blank: false,
    encrypted: false,
    cluster: testCluster,
    imagePath: `${pathAt(createdAtSeconds)}/disk.img`,
    sizeBytes: gibibyte,
    ready: true,
  });
  const parent = `csi/pvc-1.${testCluster}`;
  const path = pathAt(createdAtSeconds).slice("/pool/".length);
  assert.deepEqual(snapshots(), [{ label: "pool-fs", path, readOnly: true, parent }]);
  assert.equal(store.tree.contents.get(made.imagePath), "data");

  await clock.advance(60_000);
  assert.deepEqual(await snapshot(), made);
  assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
});

Deno.test("createSnapshot() neither asks nor changes whether the volume is in use", async () => {
  for (const record of [{ epoch }, { epoch, holders: [aHolder("a")] }]) {
    const { store, snapshot } = controller({}, record);
    const before = store.disks.get("pvc-1");
    await snapshot();
    assert.deepEqual(store.disks.get("pvc-1"), before);
  }
});

Deno.test("createSnapshot() keeps what was there, whatever becomes of the volume", async () => {
  const { store, deps, snapshot } = controller();
  const made = await snapshot();
  store.tree.contents.set(subvolumeImage("pvc-1"), "later");
  assert.equal(store.tree.contents.get(made.imagePath), "data");
  await deleteVolume(deps, "pvc-1", context);
  assert.deepEqual(await snapshot(), made);
  assert.equal(store.tree.contents.get(made.imagePath), "data");
});

Deno.test("createSnapshot() refuses the name of another volume's snapshot", async () => {
  const { store, snapshot } = controller();
  store.put(aDisk(aRecord(), { id: "pvc-2" }));
  await snapshot();
  const before = store.snapshot();
  for (const source of ["pvc-2", "pvc-3"]) {
    await assert.rejects(
      snapshot("s", source),
      refusal("exists-incompatible", new RegExp(`source=pvc-1 requested=${source}`)),
    );
  }
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("createSnapshot() makes one beside another cluster's of the same name", async () => {
  const { store, snapshot, snapshots } = controller();
  const others = [
    `${testBase}/${snapshotIdFor("s", "ffffffff")}.pvc-1.1.n.ffffffff/disk.img`,
    `${testBase}/${aSnapshotId("t")}.pvc-1.1.n.${testCluster}/disk.img`,
  ];
  for (const path of others) store.putImage(path, 1n);
  await snapshot();
  assert.equal(snapshots().length, 3);
});

Deno.test("createSnapshot() is not hindered by a copy that somebody has made elsewhere", async () => {
  const { store, snapshot, snapshots } = controller();
  const copies = [
    `/pool/backup/${id}.pvc-1.1.n.${testCluster}.img`,
    `/pool/${id}.pvc-1.1.n.${testCluster}/disk.img`,
  ];
  for (const path of copies) store.putImage(path, gibibyte);
  const made = await snapshot();
  assert.ok(made.imagePath.startsWith(`${testBase}/snap-`));
  assert.equal(snapshots().length, 2);
});

Deno.test("createSnapshot() refuses a volume in a folder that is no longer allowed, where nobody would find it", async () => {
  const { store, snapshot } = controller({}, { epoch }, { imagePath: subvolumeImage("pvc-1", "/pool/old") });
  await refusedUnchanged(
    store,
    () => snapshot(),
    refusal("precondition", /folder=\/pool\/old allowed=\/pool\/csi/),
  );
});

Deno.test("createSnapshot() refuses what is not provably there, or uses another file, and changes nothing", async () => {
  const cases: [string, (made: ReturnType<typeof controller>) => unknown, VolumeErrorKind, RegExp][] = [
    ["gone", ({ store }) => (store.disks.clear(), store.allFiles.clear()), "not-found", /volume=pvc-1/],
    ["its image is there", ({ store }) => store.hidden.add("pvc-1"), "unavailable", /its image is there/],
    ["just booted", ({ store }) => (store.disks.clear(), store.reboot()), "unavailable", /booted only/],
    ["not mounted", ({ store }) => (store.disks.clear(), store.pools = []), "unavailable", /not mounted/],
    [
      "another file",
      ({ store }) => store.edit("pvc-1", { imagePath: "/pool/csi/precious.img" }),
      "precondition",
      /a file of another name/,
    ],
    [
      "a pool without a label",
      ({ store }) => store.pools = store.pools.map((pool) => ({ ...pool, subvolumeLabel: undefined })),
      "unavailable",
      /shows no label/,
    ],
    [
      "a label that a volume has too",
      ({ store }) => store.pools = store.pools.map((pool) => ({ ...pool, labelTakenBy: "pvc-9" })),
      "unavailable",
      /the label of its pool: pool=pool volume=pvc-9/,
    ],
  ];
  for (const [name, arrange, kind, text] of cases) {
    const made = controller();
    arrange(made);
    await refusedUnchanged(made.store, () => made.snapshot(), refusal(kind, text), name);
  }
});

Deno.test("createSnapshot() believes what is read back, however the command ended", async () => {
  for (const ending of endings) {
    const [name, mishap] = ending;
    const { store, clock, snapshot, snapshots } = controller();
    store.mishap("addSubvolume", mishap);
    await endsAs(ending, snapshot());
    await clock.advance(5_000);
    const made = await snapshot();
    assert.equal(`/pool/${snapshots()[0]?.path}/disk.img`, made.imagePath, name);
    assert.equal(snapshots().length, 1, name);
  }
});

Deno.test("createSnapshot() gives two calls at once the same snapshot", async () => {
  const { snapshot, snapshots } = controller();
  const [one, two] = await Promise.all([snapshot(), snapshot()]);
  assert.deepEqual(one, two);
  assert.equal(snapshots().length, 1);
});

Deno.test("createSnapshot() is busy when another controller makes it at the same time, and leaves one at most", async () => {
  for (const when of ["before", "after"] as const) {
    const { store, snapshot, snapshots } = controller();
    store.mishap("addSubvolume", { [when]: () => store.putImage(`${pathAt(1)}/disk.img`, gibibyte) });
    await assert.rejects(snapshot(), refusal("busy", /made at the same time/));
    assert.deepEqual(snapshots().map(({ path }) => path), [pathAt(1).slice("/pool/".length)]);
    assert.equal((await snapshot()).createdAtSeconds, 1);
  }
});

Deno.test("createSnapshot() finds no room before it makes anything", async () => {
  const { store, snapshot } = controller({}, { epoch }, { sizeBytes: 51n * gibibyte });
  await refusedUnchanged(
    store,
    () => snapshot(),
    refusal("exhausted", /needs 51 GiB, 49 GiB left/),
  );
  assert.equal(
    (await controller({ overcommit: 1.5 }, { epoch }, { sizeBytes: 51n * gibibyte }).snapshot()).ready,
    true,
  );
});

Deno.test("createSnapshot() takes its snapshot back when others took the room, and says when it cannot", async () => {
  const other = aDisk(aRecord(), { id: "other", sizeBytes: 99n * gibibyte, imagePath: "/pool/x.img" });
  const { store, snapshot, snapshots } = controller();
  store.mishap("addSubvolume", { before: () => store.put(other) });
  await assert.rejects(snapshot(), refusal("exhausted", /others took the room .*1 GiB too much$/));
  assert.deepEqual(snapshots(), []);

  for (const mishap of [{ runs: false }, { refusal: "no" }, { unreadable: true, runs: false }]) {
    const { store, snapshot, snapshots } = controller();
    store.mishap("addSubvolume", { before: () => store.put(other) });
    store.mishap("removeImage", mishap);
    await assert.rejects(snapshot(), refusal("unavailable"));
    assert.equal(snapshots().length, 1);
  }
});

Deno.test("createSnapshot() puts it where the volume lies, and only there", async () => {
  const bases = [testBase, "/pool/more"];
  const { store, deps, snapshot } = controller({ basePaths: bases }, { epoch }, {
    imagePath: subvolumeImage("pvc-1", "/pool/more"),
  });
  store.tree.putSubvolume({ label: "pool-fs", path: "more", readOnly: false, parent: undefined });
  const made = await snapshot();
  assert.ok(made.imagePath.startsWith("/pool/more/snap-"));
  await deleteSnapshot(deps, id, context);
  assert.equal(store.allFiles.has(made.imagePath), false);
});
