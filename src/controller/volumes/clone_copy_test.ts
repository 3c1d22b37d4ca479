import { endings, endsAs } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import {
  aCreate,
  gibibyte,
  inTime,
  testContext,
  testSettings,
} from "../../../tests/fakes/controller_deps.ts";
import {
  aDisk,
  aRecord,
  aSnapshotId,
  plainImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { plainSource, withPlainSource } from "../../../tests/fakes/plain_source.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { VolumeErrorKind } from "../../volume/errors.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import { parseParameters } from "../../volume/model/parameters.ts";
import type { CreateRequest } from "../../volume/rules/provision.ts";
import type { SourceRef } from "../../volume/model/sources.ts";
import { createVolume } from "./create.ts";
import { createSnapshot } from "../snapshots/create.ts";

const context = testContext();
const fromVolume: SourceRef = { kind: "volume", id: "pvc-1" };
const fromSnapshot: SourceRef = { kind: "snapshot", id: aSnapshotId("s") };
const id = volumeIdFor("c");
const image = plainImage(id);
const bases = [testBase, "/fast/csi"];

function controller() {
  const test = withPlainSource({ basePaths: bases });
  const { store, deps, clock, soon } = test;
  store.pools = [...store.pools, { ...store.pools[0]!, mountPoint: "fast" }];
  const clone = (over: Partial<CreateRequest> = {}, call = context) =>
    createVolume(deps, aCreate("c", { source: fromVolume, ...over }), call);
  /** Begins a copy that takes a minute, for a call that does not. */
  const begin = async (over: Partial<CreateRequest> = {}) => {
    store.mishap("copyFile", { takesMs: 60_000 });
    await assert.rejects(inTime(clock, clone(over, soon())), refusal("unavailable", /still being copied/));
  };
  return { ...test, clone, begin };
}

/** Parameters of a StorageClass in another folder. */
const elsewhere = {
  parameters: parseParameters({ volumePath: "/fast/csi" }, { ...testSettings, basePaths: bases }),
  rawParameters: { volumePath: "/fast/csi" },
};

Deno.test("createVolume() copies the image of a volume that is a plain file, and adds its disk when it is whole", async () => {
  const { store, clone, paths } = controller();
  const made = await clone();
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), [
    "createView",
    "view",
    "copyFile",
    "view",
    "add",
  ]);
  const { imagePath, sizeBytes, exported } = made.stored;
  assert.deepEqual([imagePath, sizeBytes, exported], [image, gibibyte, false]);
  assert.deepEqual([made.record.source, made.record.blankEpoch], ["v:pvc-1", 0]);
  assert.deepEqual(paths(), [image]);
  assert.equal(store.tree.contents.get(image), "data");
  assert.deepEqual(await clone(), made);
  assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
});

Deno.test("createVolume() restores a copied snapshot, and grows the volume where it is to be larger", async () => {
  const { store, deps, clone, paths } = controller();
  const snapshot = await createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  const range = { requiredBytes: 2n * gibibyte, limitBytes: 0n };
  const made = await clone({ source: fromSnapshot, range });
  assert.equal(made.stored.sizeBytes, 2n * gibibyte);
  assert.equal(made.record.source, `s:${fromSnapshot.id}`);
  assert.deepEqual(paths(), [snapshot.imagePath, image]);
  assert.equal(store.tree.contents.get(image), "data");
  assert.equal(store.allFiles.get(snapshot.imagePath)?.sizeBytes, gibibyte);
});

Deno.test("createVolume() restores a copied snapshot also while its volume is in use", async () => {
  const { deps, clone, publish } = controller();
  await createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  await publish();
  assert.equal((await clone({ source: fromSnapshot })).stored.imagePath, image);
});

Deno.test("createVolume() copies no snapshot whose image a disk uses, from the beginning or meanwhile", async () => {
  for (const slot of ["other", fromSnapshot.id]) {
    for (const when of ["always", "at first", "meanwhile"]) {
      const { store, deps, clone, paths } = controller();
      const { imagePath } = await createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
      const use = () => void store.disks.set(slot, { ...store.disks.get("pvc-1")!, id: slot, imagePath });
      if (when !== "meanwhile") use();
      store.takeCount();
      store.mishap("copyFile", { after: () => when === "at first" ? void store.disks.delete(slot) : use() });
      const unused = refusal("precondition", new RegExp(`a disk uses its image: .*disk=${slot}`));
      await assert.rejects(clone({ source: fromSnapshot }), unused, when);
      const copies = store.calls.filter(({ method }) => method === "copyFile").length;
      assert.deepEqual([paths(), copies], [[imagePath], when === "meanwhile" ? 1 : 0], when);
    }
  }
});

Deno.test("createVolume() copies to another pool, and where source or folder have no subvolume", async () => {
  const other = controller();
  const made = await other.clone(elsewhere);
  assert.equal(made.stored.imagePath, plainImage(id, "/fast/csi"));
  assert.deepEqual(other.paths(), ["/fast/csi", plainImage(id, "/fast/csi")], "it makes the folder");

  const old = controller();
  old.store.pools = old.store.pools.map((pool) => ({
    ...pool,
    filesystem: "btrfs",
    subvolumeLabel: pool.mountPoint,
  }));
  assert.equal((await old.clone()).stored.imagePath, image);
  assert.deepEqual([...old.store.tree.subvolumes], []);
});

Deno.test("createVolume() never takes a copy of something else for what was asked for", async () => {
  const { store, deps, clock, clone, begin } = controller();
  store.putFile("/fast/csi", 0n, true);
  store.put(aDisk(aRecord(), { id: "pvc-2", imagePath: plainImage("pvc-2") }));
  const snapshot = await createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  await begin();
  const others: [Partial<CreateRequest>, VolumeErrorKind][] = [
    [{ source: { kind: "volume", id: "pvc-2" } }, "exists-incompatible"],
    [{ source: fromSnapshot }, "exists-incompatible"],
    [elsewhere, "exists-incompatible"],
    [{ source: { kind: "volume", id: "pvc-3" } }, "not-found"],
  ];
  for (const [over, kind] of others) await assert.rejects(clone(over), refusal(kind));
  const made = await inTime(clock, clone());
  assert.equal(made.record.source, "v:pvc-1");
  assert.equal(store.allFiles.has(snapshot.imagePath), true);
});

Deno.test("createVolume() copies anew from a snapshot that was deleted and made again meanwhile", async () => {
  const { store, clock, clone, begin } = controller();
  const name = (time: string) => `${testBase}/${fromSnapshot.id}.pvc-1.${time}.n.${testCluster}.img`;
  store.putFile(name("1"), gibibyte);
  store.tree.contents.set(name("1"), "old");
  await begin({ source: fromSnapshot });
  store.allFiles.delete(name("1"));
  store.putFile(name("2"), gibibyte);
  store.tree.contents.set(name("2"), "new");
  await inTime(clock, clone({ source: fromSnapshot }));
  assert.equal(store.tree.contents.get(image), "new");
});

Deno.test("createVolume() gives no volume the data of one that was deleted and made again after it was copied", async () => {
  const { store, clock, clone, begin, paths } = controller();
  await begin();
  await clock.advance(60_000);
  const again = aRecord({ epoch: { counter: 0, nonce: "89abcdef" }, blankEpoch: 1 });
  store.put(aDisk(again, { imagePath: plainSource }));
  store.tree.contents.set(plainSource, "new");
  await assert.rejects(
    inTime(clock, clone()),
    refusal("busy", /was changed while it was copied: .*source=pvc-1/),
  );
  assert.deepEqual([paths(), store.disks.has(id)], [[], false]);
  const made = await inTime(clock, clone());
  assert.deepEqual([store.tree.contents.get(image), made.record.blankEpoch], ["new", 1]);
});

Deno.test("createVolume() leaves nothing of a copy whose disk was not added, and the next try succeeds", async () => {
  for (const ending of endings) {
    const [name, mishap] = ending;
    const { store, clone, paths } = controller();
    store.mishap("add", mishap);
    await endsAs(ending, clone());
    assert.deepEqual(paths(), store.disks.has(id) ? [image] : [], name);
    const made = await clone();
    assert.deepEqual([store.disks.get(id), paths(), store.violations], [made.stored, [image], []], name);
  }
});

Deno.test("createVolume() removes the copy that got its name and no disk, and nothing that was there before", async () => {
  const renamed = controller();
  renamed.store.mishap("add", {
    before: () => {
      const part = renamed.paths().find((path) => path.endsWith(".part"))!;
      renamed.store.tree.rename(part, image);
    },
    refusal: "failure: no",
  });
  await assert.rejects(renamed.clone(), refusal("unavailable", /answered "failure: no"/));
  assert.deepEqual(renamed.paths(), []);

  const taken = controller();
  taken.store.mishap("add", { before: () => taken.store.putFile(image, 7n) });
  await assert.rejects(taken.clone(), refusal("unavailable"));
  assert.deepEqual(taken.paths(), [image]);
  assert.equal(taken.store.allFiles.get(image)?.sizeBytes, 7n);
  await assert.rejects(taken.clone(), refusal("precondition", /exists without a disk/));
});

Deno.test("createVolume() does not remove the image of a disk that a router shows only later", async () => {
  const { store, clone, clock, notes } = controller();
  store.mishap("add", {
    after: () => {
      store.hidden.add(id);
      store.reboot();
    },
  });
  await assert.rejects(clone(), refusal("unavailable"));
  assert.match(notes.join(), /a copy could not be removed/);
  store.hidden.clear();
  await clock.advance(120_000);
  const made = await clone();
  assert.deepEqual([store.disks.get(id), store.allFiles.has(image)], [made.stored, true]);
});

Deno.test("createVolume() copies one image to two volumes at once", async () => {
  const { store, deps } = controller();
  const made = await Promise.all(
    ["c", "d"].map((name) => createVolume(deps, aCreate(name, { source: fromVolume }), context)),
  );
  assert.deepEqual(made.map(({ stored }) => store.tree.contents.get(stored.imagePath)), ["data", "data"]);
});
