import { refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  gibibyte,
  testContext,
  testController,
  testParameters,
  withoutSubvolumes,
} from "../../../tests/fakes/controller_deps.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import {
  aDisk,
  aRecord,
  plainImage,
  subvolumeImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { VolumeErrorKind } from "../../volume/errors.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import { planVolume } from "../../volume/rules/provision.ts";
import { publishVolume } from "../attachments/publish.ts";
import { createVolume } from "./create.ts";
import { deleteVolume } from "./delete.ts";
import { PromisedRoom } from "./promised_room.ts";
import type { ControllerDeps } from "../deps.ts";

const context = testContext();
const request = aCreate("a");
const plan = planVolume(request, testCluster, new SeededRandom());
const create = (deps: ControllerDeps) => createVolume(deps, request, context);
const imagePath = subvolumeImage(plan.id);
/** What the call adds. */
const added: StoredVolume = aDisk(plan.record, {
  id: plan.id,
  imagePath,
  exported: false,
  exportNqn: "",
  exportPort: 0,
});
const ofSize = (name: string, sizeBytes: bigint) =>
  aCreate(name, { range: { requiredBytes: sizeBytes, limitBytes: 0n } });

Deno.test("createVolume() takes two commands, one when the volume exists, and answers the same", async () => {
  const { deps, store } = testController();
  const made = await create(deps);
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["createView", "add"]);
  assert.deepEqual(await create(deps), made);
  assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
  assert.deepEqual(store.disks.get(plan.id), made.stored);
  assert.equal(made.stored.exported, false);
  assert.ok(store.allFiles.has(imagePath));
});

Deno.test("createVolume() makes the folder once, and each volume a subvolume in it", async () => {
  const { deps, store } = testController();
  await create(deps);
  assert.equal(store.allFiles.get(testBase)?.directory, true);
  await createVolume(deps, aCreate("b"), context);
  const other = volumeIdFor("b");
  assert.deepEqual([...store.disks.values()].map((disk) => disk.imagePath), [
    imagePath,
    subvolumeImage(other),
  ]);
  const subvolumes = [...store.tree.subvolumes.values()];
  const made = { label: "pool-fs", readOnly: false, parent: undefined };
  assert.deepEqual(subvolumes, [
    { ...made, path: "csi" },
    { ...made, path: `csi/${plan.filePrefix}` },
    { ...made, path: `csi/${other}.${testCluster}` },
  ]);
});

Deno.test("createVolume() makes a plain file where no subvolume can be", async () => {
  const plain = testController();
  withoutSubvolumes(plain.store);
  const flat = testController({ subvolumeNames: "flat" });
  for (const { deps, store } of [plain, flat]) {
    const made = await create(deps);
    assert.equal(made.stored.imagePath, plainImage(plan.id));
    assert.equal(store.allFiles.get(testBase)?.directory, true);
    await create(deps);
    await deleteVolume(deps, plan.id, context);
    assert.deepEqual([...store.allFiles.keys()], [testBase]);
  }
});

Deno.test("createVolume() uses the empty subvolume that an earlier try has left", async () => {
  const { deps, store } = testController();
  store.tree.putSubvolume({ label: "pool-fs", path: "csi", readOnly: false, parent: undefined });
  store.tree.putSubvolume({
    label: "pool-fs",
    path: `csi/${plan.filePrefix}`,
    readOnly: false,
    parent: undefined,
  });
  assert.equal((await create(deps)).stored.imagePath, imagePath);
  assert.deepEqual(store.violations, []);
});

Deno.test("createVolume() reports a command that did not run, and the next try succeeds", async () => {
  const cases = [
    [{ runs: false }, /the router did not do it/],
    [{ refusal: "failure: not enough space" }, /the router answered "failure: not enough space"/],
    [{ runs: false, unreadable: true }, /Cannot read/],
    [{ unreadable: true }, /Cannot read/],
  ] as const;
  for (const [mishap, text] of cases) {
    const { deps, store } = testController();
    store.mishap("add", mishap);
    await assert.rejects(create(deps), refusal("unavailable", text));
    await create(deps);
    assert.equal(store.disks.size, 1);
  }
});

Deno.test("createVolume() accepts the same volume made by another call in between", async () => {
  const { deps, store } = testController();
  store.mishap("add", { before: () => store.put(added) });
  assert.equal((await create(deps)).stored.comment, added.comment);
});

Deno.test("createVolume() does not take another one's disk, made in between, for its own", async () => {
  const cases: [Partial<StoredVolume>, VolumeErrorKind][] = [
    [{ comment: "somebody's" }, "precondition"],
    [{ comment: aDisk(aRecord({ capabilities: "xfs/w" })).comment }, "busy"],
    [{ sizeBytes: 5n * gibibyte }, "busy"],
    [{ imagePath: "/pool/csi/other.img" }, "busy"],
    [{ exported: true }, "busy"],
  ];
  for (const [difference, kind] of cases) {
    const { deps, store } = testController();
    store.mishap("add", { before: () => store.put({ ...added, ...difference }) });
    await assert.rejects(create(deps), refusal(kind));
  }
});

Deno.test("createVolume() refuses while disks may be missing", async () => {
  const young = testController();
  young.store.reboot();
  await young.clock.advance(119_999);
  await assert.rejects(
    createVolume(young.deps, request, context),
    refusal("unavailable", /booted only 119 s ago/),
  );
  await young.clock.advance(1);
  await createVolume(young.deps, request, context);

  const { deps, store } = testController();
  store.pools = store.pools.map((pool) => ({ ...pool, mountPoint: "other" }));
  await assert.rejects(create(deps), refusal("unavailable", /pool=pool mounted=other/));
  assert.equal(store.disks.size, 0);
});

Deno.test("createVolume() refuses an image that is there without its disk and leaves it alone", async () => {
  for (const path of [imagePath, plainImage(plan.id)]) {
    const { deps, store } = testController();
    store.putImage(path, 7n);
    await refusedUnchanged(store, () => create(deps), refusal("precondition", /exists without a disk/));
  }
});

Deno.test("createVolume() fills a pool to the last byte and not beyond", async () => {
  const { deps, store } = testController();
  await createVolume(deps, ofSize("a", 60n * gibibyte), context);
  await assert.rejects(createVolume(deps, ofSize("b", 41n * gibibyte), context), refusal("exhausted"));
  await createVolume(deps, ofSize("b", 40n * gibibyte), context);
  await assert.rejects(
    createVolume(deps, ofSize("c", gibibyte), context),
    refusal("exhausted", /, 0 B left/),
  );
  assert.equal(store.disks.size, 2);
});

Deno.test("createVolume() never leaves a pool over-promised by creates that saw the same room", async () => {
  const { deps, store } = testController();
  const big = ["a", "b", "c"].map((name) => createVolume(deps, ofSize(name, 60n * gibibyte), context));
  const results = await Promise.allSettled(big);
  const made = results.filter((result) => result.status === "fulfilled").length;
  assert.ok(made <= 1);
  assert.equal(store.disks.size, made);
  assert.equal([...store.allFiles.values()].filter((file) => !file.directory).length, made);
});

Deno.test("createVolume() takes its volume back when others took the room", async () => {
  const { deps, store } = testController();
  const other = aDisk(aRecord(), { id: "other", sizeBytes: 100n * gibibyte, imagePath: "/pool/x.img" });
  store.mishap("add", { before: () => store.put(other) });
  await assert.rejects(create(deps), refusal("exhausted", /1 GiB too much/));
  assert.deepEqual([...store.disks.keys()], ["other"]);
  assert.equal(store.allFiles.has(imagePath), false);
  assert.deepEqual([...store.tree.subvolumes.values()].map((subvolume) => subvolume.path), ["csi"]);
});

Deno.test("createVolume() does not say that it left nothing behind when it did", async () => {
  const other = aDisk(aRecord(), { id: "other", sizeBytes: 100n * gibibyte, imagePath: "/pool/x.img" });
  for (const mishap of [{ runs: false }, { refusal: "no" }, { unreadable: true }]) {
    const { deps, store } = testController();
    store.mishap("add", { before: () => store.put(other) });
    store.mishap("remove", mishap);
    await assert.rejects(create(deps), refusal("unavailable"));
  }
});

Deno.test("createVolume() takes nothing back that somebody uses already", async () => {
  const { deps, store } = testController();
  const other = aDisk(aRecord(), { id: "other", sizeBytes: 100n * gibibyte, imagePath: "/pool/x.img" });
  store.mishap("add", { before: () => store.put(other) });
  store.mishap("remove", { before: () => store.edit(plan.id, { comment: `${added.comment} in use` }) });
  await assert.rejects(create(deps), refusal("unavailable", /Cannot remove the volume again/));
  assert.ok(store.disks.has(plan.id));
});

Deno.test("createVolume() honours the overcommit that is set", async () => {
  const { deps, store } = testController({ overcommit: 2 });
  await createVolume(deps, ofSize("a", 100n * gibibyte), context);
  await createVolume(deps, ofSize("b", 100n * gibibyte), context);
  await assert.rejects(createVolume(deps, aCreate("c"), context), refusal("exhausted"));
  assert.equal(store.disks.size, 2);
});

Deno.test("createVolume() counts what the router may still add of a command without an answer, also where it gives up", async () => {
  const { deps, store } = testController();
  const promised = new PromisedRoom(deps.clock, deps.settings, () => true);
  const known = { ...deps, promised };
  await createVolume(known, aCreate("first"), context);
  const [pool] = store.pools;
  const before = promised.promisedWithin(pool!)!;
  store.mishap("addUnseen", { late: true });
  store.mishap("view", { unreadable: true });
  await assert.rejects(createVolume(known, request, context), refusal("unavailable"));
  assert.equal(promised.promisedWithin(pool!), before + gibibyte);
  store.runLate();
  assert.ok(store.disks.has(plan.id));
});

Deno.test("a disk that came back without its image is neither created nor published, and its volume can be made again", async () => {
  const { deps, store } = testController();
  await create(deps);
  const forgotten = store.disks.get(plan.id)!;
  await deleteVolume(deps, plan.id, context);
  // A router that has lost its latest configuration shows the disk again; the files are as they were.
  store.disks.set(plan.id, forgotten);
  const publish = () => publishVolume(deps, plan.id, aPublish("a"), testParameters, context);
  for (const call of [() => create(deps), publish]) {
    await refusedUnchanged(store, call, refusal("unavailable", /does not show its image/));
  }
  await deleteVolume(deps, plan.id, context);
  await create(deps);
  await publish();
});
