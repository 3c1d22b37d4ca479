import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  plainImage,
  subvolumeImage,
  testBase,
  testPrefix,
} from "../../../tests/fakes/records.ts";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { legacyEpoch } from "../../volume/model/epoch.ts";
import { nameDigest } from "../../volume/model/ids/ids.ts";
import { importedSource } from "../../volume/model/sources.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import { unpublishVolume, withdrawVolume } from "./unpublish.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };
const shared = (nodeId: string) => aHolder(nodeId, { mode: "multi-node-multi-writer" });

/** A controller on a router with the volume `pvc-1`. */
function controller(record: Partial<VolumeRecord> = { epoch, holders: [aHolder("a")] }) {
  const made = testController();
  made.store.put(aDisk(aRecord(record)));
  return { ...made, ...volumeCalls(made) };
}

Deno.test("unpublishVolume() takes the export away in two commands, and one when it is gone", async () => {
  const { store, unpublish, record, clock } = controller();
  await unpublish("a");
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["view", "change"]);
  assert.equal(store.disks.get("pvc-1")?.exported, false);
  assert.deepEqual(record().holders, []);
  assert.deepEqual(record().epoch, epoch);
  assert.ok(record().withdrawnAtSeconds! * 1000 >= clock.now());
  const before = store.snapshot();
  for (const nodeId of ["a", "b", ""]) await unpublish(nodeId);
  assert.deepEqual(store.snapshot(), before);
  assert.equal(store.takeCount(), 3);
});

Deno.test("unpublishVolume() does not need to know the node", async () => {
  const { store, unpublish } = controller({ epoch, holders: [aHolder("stranger")] });
  await unpublish("stranger");
  assert.equal(store.disks.get("pvc-1")?.exported, false);
});

Deno.test("unpublishVolume() takes nothing from the holder for a node that is none", async () => {
  const { store, unpublish, notes } = controller();
  const before = store.snapshot();
  await unpublish("b");
  assert.deepEqual(store.snapshot(), before);
  assert.match(notes.join(), /does not hold the volume/);
});

Deno.test("unpublishVolume() answers OK only when the export is read back as gone", async () => {
  for (const ending of endings) {
    const [name, mishap] = ending;
    const { store, unpublish } = controller();
    store.mishap("change", mishap);
    await endsAs(ending, unpublish("a"));
    await unpublish("a");
    assert.equal(store.disks.get("pvc-1")?.exported, false, name);
  }
});

Deno.test("unpublishVolume() is not deceived by a router that writes the record and leaves the export on", async () => {
  const { store, unpublish } = controller();
  store.mishap("change", { after: () => store.edit("pvc-1", { exported: true }) });
  await assert.rejects(unpublish("a"), refusal("unavailable", /the router did not do it/));
  await unpublish("a");
  assert.equal(store.disks.get("pvc-1")?.exported, false);
});

Deno.test("unpublishVolume() is not deceived by a disk that is not shown after the command", async () => {
  const { store, unpublish } = controller();
  store.mishap("change", { after: () => store.hidden.add("pvc-1") });
  await assert.rejects(unpublish("a"), refusal("unavailable"));
});

Deno.test("unpublishVolume() is done when the volume is provably gone, and only then", async () => {
  const gone = controller();
  gone.store.disks.clear();
  await assert.rejects(gone.unpublish("a"), refusal("unavailable", /its image is there/));
  gone.store.allFiles.clear();
  await gone.unpublish("a");
  gone.store.reboot();
  await assert.rejects(gone.unpublish("a"), refusal("unavailable", /booted only/));

  const unmounted = controller();
  unmounted.store.disks.clear();
  unmounted.store.pools = [];
  await assert.rejects(unmounted.unpublish("a"), refusal("unavailable", /not mounted/));
});

Deno.test("unpublishVolume() takes nothing from a volume whose disk got this one's slot, and is not done while this one's is on", async () => {
  const { store, unpublish } = controller({ epoch, holders: [aHolder("a")] });
  const other = aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { id: "pvc-2" });
  store.put(other);
  const own = store.disks.get("pvc-1")!;
  store.disks.set("pvc-1", { ...other, id: "pvc-1" });
  store.disks.set("pvc-2", { ...own, id: "pvc-2" });
  await refusedUnchanged(
    store,
    () => unpublish("a"),
    refusal("precondition", /given another slot.*slot=pvc-2/),
  );
  // As the legacy driver exported it, without an epoch.
  store.edit("pvc-2", { exportNqn: `${testPrefix}:pvc-1` });
  await refusedUnchanged(store, () => unpublish("a"), refusal("precondition", /given another slot/));
  store.edit("pvc-2", { exported: false });
  const before = store.snapshot();
  await unpublish("a");
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("unpublishVolume() leaves the export of another volume in its slot on where only the image or the record says whose it is", async () => {
  const legacy = (digit: string) => `pvc-00000000-0000-0000-0000-00000000000${digit}`;
  const held = { epoch, blankEpoch: 0, holders: [aHolder("a")] };
  const aLegacy = (id: string) =>
    aDisk(aRecord({ ...held, epoch: legacyEpoch, name: nameDigest(id) }), {
      id,
      imagePath: `${testBase}/${id}.img`,
      exportNqn: `${testPrefix}:${id}`,
    });
  const imagePath = "/pool/films/films.raw";
  const anImported = aDisk(
    aRecord({ ...held, name: nameDigest("films"), source: importedSource("films", imagePath) }),
    { id: "films", imagePath },
  );
  const named = (disk: StoredVolume, exportNqn: string) => ({ ...disk, exportNqn });
  const cases: readonly (readonly [string, StoredVolume])[] = [
    [legacy("a"), aLegacy(legacy("b"))],
    // The NQN tells no volume, so the image or the record does.
    [legacy("a"), named(aLegacy(legacy("b")), legacy("a"))],
    ["pvc-1", named(aDisk(aRecord(held), { id: "pvc-2" }), "pvc-1")],
    ["pvc-1", named(aDisk(aRecord(held), { id: "pvc-2", imagePath: plainImage("pvc-2") }), "pvc-1")],
    ["pvc-1", named(anImported, "pvc-1")],
  ];
  for (const [id, other] of cases) {
    const { store, deps } = testController();
    store.put(other);
    store.disks.delete(other.id);
    store.disks.set(id, { ...other, id });
    const before = store.snapshot();
    await unpublishVolume(deps, id, "a", context);
    assert.deepEqual(store.snapshot(), before);
  }
});

Deno.test("unpublishVolume() is not done while the pool is away whose folder the PersistentVolume names", async () => {
  const cluster = new FakeClusterView();
  cluster.contexts.set("pvc-1", { volumePath: "/old/csi" });
  const made = testController({}, 1, cluster);
  const [{ store }, { unpublish, disk }] = [made, volumeCalls(made)];
  const imagePath = plainImage("pvc-1", "/old/csi");
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { imagePath }));
  store.hidden.add("pvc-1");
  await refusedUnchanged(store, unpublish, refusal("unavailable", /not mounted on the router: pool=old/));
  store.hidden.clear();
  store.pools = [...store.pools, { ...store.pools[0]!, mountPoint: "old" }];
  await unpublish();
  assert.equal(disk().exported, false);
});

Deno.test("unpublishVolume() is not done below another volume's disk while its own may still come back", async () => {
  const otherBase = "/pool2/csi";
  const made = testController({ basePaths: [testBase, otherBase] });
  const [{ store }, { unpublish }] = [made, volumeCalls(made)];
  const other = aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { id: "pvc-2" });
  store.disks.set("pvc-1", { ...other, id: "pvc-1" });
  await refusedUnchanged(store, unpublish, refusal("unavailable", /not mounted on the router: pool=pool2/));
  store.pools = [...store.pools, { ...store.pools[0]!, mountPoint: "pool2" }];
  const own = aDisk(aRecord({ epoch }), { id: "pvc-3", imagePath: plainImage("pvc-1", otherBase) });
  store.put(own);
  store.disks.delete("pvc-3");
  await refusedUnchanged(store, unpublish, refusal("unavailable", /though its image is there/));
  store.put(own);
  const before = store.snapshot();
  await unpublish();
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("unpublishVolume() is not done while its disk is exported from another slot and has lost its record", async () => {
  const imagePath = "/pool/films/films.raw";
  const source = importedSource("data", imagePath);
  const record = aRecord({ epoch, blankEpoch: 0, source, holders: [aHolder("a")] });
  const imported = aDisk(record, { id: "data", imagePath });
  const cluster = "ffffffff";
  const moved = async (comment: string, over: Partial<StoredVolume> = {}) => {
    const { store, deps } = testController();
    store.put({ ...imported, id: "data2", comment, ...over });
    const before = store.snapshot();
    await unpublishVolume(deps, "data", "a", context).finally(() => {
      assert.deepEqual(store.snapshot(), before);
    });
  };
  const own = /\{rds1 c=\S+ /.exec(imported.comment)![0];
  for (const comment of ["", "films", "{rds1 broken", `${own}broken`]) {
    await assert.rejects(moved(comment), refusal("precondition", /given another slot.*slot=data2/), comment);
  }
  await moved("", { exported: false });
  // Another cluster's volume of the same name, its record damaged or not; and exports that people or other programs make.
  for (const comment of [aDisk({ ...record, cluster }).comment, `{rds1 c=${cluster} broken`]) {
    await moved(comment);
  }
  for (const exportNqn of ["data", "nqn.2014-08.org.example:data", `${testPrefix}:data2`, ""]) {
    await moved("", { exportNqn });
  }
});

Deno.test("withdrawVolume() takes a volume from all its nodes, and names them", async () => {
  const { store, deps } = controller({ capabilities: "block/x", epoch, holders: [shared("a"), shared("b")] });
  assert.deepEqual(await withdrawVolume(deps, "pvc-1", context), ["a", "b"]);
  assert.equal(store.disks.get("pvc-1")?.exported, false);
  assert.equal(store.takeCount(), 2);
  assert.deepEqual(await withdrawVolume(deps, "pvc-1", context), []);
});

Deno.test("withdrawVolume() refuses a slot with the disk of another volume, and says whose it is", async () => {
  for (const exported of [true, false]) {
    const { store, deps } = controller();
    const other = aDisk(aRecord({ epoch, holders: [aHolder("node-9")] }), { id: "pvc-2", exported });
    store.disks.set("pvc-1", { ...other, id: "pvc-1" });
    const withdraw = () => withdrawVolume(deps, "pvc-1", context);
    await refusedUnchanged(
      store,
      withdraw,
      refusal("precondition", /another volume.*path=\S*pvc-2.*nqn=\S*pvc-2/),
    );
  }
});

Deno.test("unpublishVolume() takes every kind of volume from its node, whatever the router calls its export", async () => {
  const legacyId = "pvc-00000000-0000-0000-0000-00000000000a";
  const imagePath = "/pool/films/films.raw";
  const imported = { name: nameDigest("data"), source: importedSource("data", imagePath) };
  const kinds: readonly (readonly [Partial<VolumeRecord>, Partial<StoredVolume>])[] = [
    [{}, {}],
    [{}, { imagePath: plainImage("pvc-1") }],
    [{}, { imagePath: plainImage("pvc-1", `${testBase}/a/b`) }],
    [{}, { imagePath: subvolumeImage("pvc-1", `${testBase}/a/b`) }],
    [{ source: "v:pvc-9" }, {}],
    [{ source: "s:snap-9" }, {}],
    [{ epoch: legacyEpoch }, { id: legacyId, imagePath: `${testBase}/${legacyId}.img` }],
    [{}, { id: legacyId, imagePath: `${testBase}/${legacyId}.img` }],
    [imported, { id: "data", imagePath }],
    // A person pointed the disk at another file.
    [imported, { id: "data", imagePath: "/pool/films/new.raw" }],
    [{}, { imagePath: "/pool/csi/renamed.img" }],
  ];
  for (const [record, disk] of kinds) {
    const id = disk.id ?? "pvc-1";
    for (const exportNqn of [undefined, `${testPrefix}:${id}`, id, "nqn.stray"]) {
      const { store, deps } = testController();
      const nqn = exportNqn === undefined ? {} : { exportNqn };
      store.put(aDisk(aRecord({ epoch, holders: [aHolder("a")], ...record }), { ...disk, ...nqn }));
      await unpublishVolume(deps, id, "a", context);
      assert.equal(store.disks.get(id)?.exported, false, `${disk.imagePath} ${exportNqn}`);
    }
  }
});

Deno.test("unpublishVolume() writes a withdrawal that the router ran late once, and the grace counts from its read-back", async () => {
  const { store, publish, unpublish, clock } = controller();
  store.lingerMs = 10_000;
  store.mishap("change", { takesMs: 25_000 });
  await unpublish("a");
  assert.deepEqual(store.calls.map((call) => call.method), ["view", "change"]);
  const startMs = clock.monotonicMs();
  await publish("b");
  assert.ok(clock.monotonicMs() - startMs >= 9_000);
  assert.deepEqual(store.violations, []);
});

Deno.test("unpublishVolume() answers OK only when an earlier publish can no longer take effect", async () => {
  const joins = { capability: { access: "block", mode: "multi-node-multi-writer" } } as const;
  const cases = [
    [{}, {}],
    [{ capabilities: "block/x", epoch, holders: [shared("a")] }, joins],
  ] as const;
  for (const [record, request] of cases) {
    const { store, publish, unpublish, disk, holders } = controller(record);
    store.mishap("change", { late: true, unreadable: true });
    await assert.rejects(publish("b", request), refusal("unavailable"));
    const before = disk();
    store.takeCount();
    await unpublish("b");
    assert.equal(store.takeCount(), 2);
    store.runLate();
    assert.deepEqual(disk(), { ...before, comment: disk().comment });
    assert.doesNotMatch(holders(), /b/);
    await unpublish("b");
    assert.equal(store.takeCount(), 1);
  }
});

Deno.test("unpublishVolume() is busy when an earlier publish takes effect after the look, and then undoes it", async () => {
  const { store, publish, unpublish } = controller({});
  store.mishap("change", { late: true, unreadable: true });
  await assert.rejects(publish("b"), refusal("unavailable"));
  store.mishap("change", { before: () => store.runLate() });
  await assert.rejects(unpublish("b"), refusal("busy"));
  await unpublish("b");
  assert.equal(store.disks.get("pvc-1")?.exported, false);
});
