// The RouterOS adapter's work on subvolumes, snapshots and copies, on the simulator's real SSH server, and the number
// of commands that it takes.
import assert from "node:assert/strict";
import { systemClock } from "../../src/host/clock.ts";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import { neverUsedMark } from "../../src/volume/model/layout.ts";
import { typeTo } from "../support/simulated_router.ts";
import {
  addOne,
  contractTest,
  filePrefix,
  filePrefixOf,
  folder,
  gib,
  hasImage,
  held,
  imageOf,
  locationOf,
  newVolume,
  nqn,
  record,
  slot,
  steps,
  truth,
  wanted,
} from "./_routeros_bench.ts";
import {
  addInner,
  addSnapshot,
  copy,
  copySteps,
  filesHolding,
  hasSubvolume,
  innerPlace,
  label,
  newCopiedVolume,
  newInnerVolume,
  newRestoredVolume,
  newSnapshot,
  restored,
  snapshot,
  snapshotPart,
  subvolumeSteps,
  unfinished,
} from "./_routeros_images.ts";

const one = { id: slot, comment: record };

contractTest("a volume in a subvolume takes two commands to make, and two to be rid of", async (bench) => {
  const { router, store, call, cost } = bench;
  const empty = await store.createView(wanted(slot), call());
  assert.deepEqual([empty.files, empty.pools[0]?.subvolumeLabel], [[], label]);
  const { after } = await store.add(newInnerVolume(), call());
  assert.deepEqual(cost(), { execs: 2, statements: 7 });
  assert.deepEqual(after.volumes, [truth(router, slot)]);
  assert.equal(truth(router, slot)?.imagePath, innerPlace(slot).path);
  assert.ok(hasSubvolume(router, `metal-csi/${filePrefix}`) && hasSubvolume(router, "metal-csi"));
  const again = await store.createView(wanted("pvc-1"), call());
  assert.ok(again.files.some((file) => file.path === folder && file.directory));
  cost();

  const view = await store.view(slot, filePrefix, call());
  assert.deepEqual(view.files, filesHolding(router, filePrefix));
  const removed = await store.remove(view.volume!, innerPlace(slot), filePrefix, call());
  assert.deepEqual(cost(), { execs: 2, statements: 7 });
  assert.deepEqual([removed.after.volume, removed.after.files, removed.refusal], [undefined, [], undefined]);
  assert.equal(hasSubvolume(router, `metal-csi/${filePrefix}`), false);
});

contractTest(
  "a snapshot keeps what it was made of, and a volume made of it goes its own way",
  async (bench) => {
    const { router, store, call, cost } = bench;
    await addInner(bench);
    cost();
    await addSnapshot(bench);
    assert.deepEqual(cost(), { execs: 1, statements: 3 });
    assert.deepEqual(await store.subvolume(innerPlace(slot).subvolume, call()), {
      readOnly: false,
      parentName: "",
    });
    assert.deepEqual(await store.subvolume(snapshot.subvolume!, call()), {
      readOnly: true,
      parentName: filePrefix,
    });
    assert.equal(await store.subvolume({ label, path: "metal-csi/none" }, call()), undefined);

    await store.change(slot, record, { comment: record, sizeBytes: 2n * gib }, call());
    const { files } = await store.files(snapshotPart, call());
    assert.deepEqual(files, filesHolding(router, snapshotPart));
    assert.equal(files.find((file) => file.path === snapshot.path)?.sizeBytes, gib);

    await store.createView(wanted(restored), call());
    cost();
    const { makeFolder: _folder, ...volume } = newRestoredVolume();
    const { after } = await store.add(volume, call());
    assert.deepEqual(cost(), { execs: 1, statements: 2 });
    assert.equal(after.volumes.find(({ id }) => id === restored)?.sizeBytes, gib);
    const made = await store.subvolume(innerPlace(restored).subvolume, call());
    assert.equal(made?.readOnly, false);
    assert.equal(made?.parentName, snapshot.subvolume!.path.split("/").at(-1));
  },
);

contractTest("a clone that does not fit one command has a mark until it gets its disk", async (bench) => {
  const { router, store, call, cost } = bench;
  await addInner(bench);
  await addSnapshot(bench);
  const comment = record.padEnd(250, "-");
  const { makeFolder: _folder, ...restore } = { ...newRestoredVolume(), comment };
  const volume = { ...restore, subvolume: { ...restore.subvolume!, guard: one } };
  const mark = neverUsedMark(volume.location, comment);
  const made = () => filesHolding(router, filePrefixOf(restored)).map(({ path }) => path);
  await store.createView(wanted(restored), call());
  router.faults.arm({ match: "/disk add", nth: 1, times: 1, action: "drop-before", value: undefined });
  assert.equal((await store.add(volume, call())).after.volumes.length, 1);
  assert.ok(made().includes(mark) && made().includes(volume.location.path));

  await store.removeImage(volume.location, filePrefixOf(restored), call());
  assert.deepEqual(made(), []);
  cost();
  const { after } = await store.add(volume, call());
  assert.equal(cost().execs, 2);
  assert.ok(after.volumes.some(({ id }) => id === restored));
  assert.ok(!made().includes(mark) && made().includes(volume.location.path));
});

contractTest("a clone's late second half adds no disk on the clone of a later attempt", async (bench) => {
  const { router, store, call } = bench;
  await addInner(bench);
  await addSnapshot(bench);
  const attempt = (comment: string) => {
    const { makeFolder: _folder, ...restore } = newRestoredVolume();
    return { ...restore, comment, subvolume: { ...restore.subvolume!, guard: one } };
  };
  const [blank, used] = [attempt("blank ".padEnd(250, "-")), attempt("used ".padEnd(250, "-"))];
  const addFirstHalf = async (volume: typeof blank) => {
    router.faults.arm({ match: "/disk add", nth: 1, times: 1, action: "drop-before", value: undefined });
    await store.add(volume, call());
    return router.journal.list().findLast(({ command }) => command.includes("/disk add"))!.command;
  };
  await store.createView(wanted(restored), call());
  const late = await addFirstHalf(blank);
  await store.removeImage(blank.location, filePrefixOf(restored), call());
  await addFirstHalf(used);
  await typeTo(router.model)(late);
  assert.equal(truth(router, restored), undefined);

  await store.removeImage(used.location, filePrefixOf(restored), call());
  const { after } = await store.add(used, call());
  assert.equal(after.volumes.find(({ id }) => id === restored)?.comment, used.comment);
});

contractTest(
  "a subvolume is neither made nor removed by a label that is written in a volume, and no command more is sent",
  async (bench) => {
    const { router, store, call, cost } = bench;
    await addInner(bench);
    const tenant = "pvc-1111000011110000111100001111";
    await addOne(bench, tenant);
    const write = async (text: string) => {
      const written = await fetch(`${router.controlUrl}/disks/${tenant}`, {
        method: "PATCH",
        body: JSON.stringify({ "fs-label": text, "pool-fs": "btrfs" }),
      });
      await written.body?.cancel();
      assert.equal(written.status, 200);
    };
    await write(label);
    cost();
    const view = await store.createView(wanted(restored), call());
    assert.equal(view.pools[0]?.labelTakenBy, tenant);
    const { makeFolder: _folder, ...volume } = newInnerVolume(restored);
    const added = await store.add(volume, call());
    assert.match(added.refusal!, /a volume has this fs-label.*rds-csi doctor/);
    assert.equal(added.after.volumes.some(({ id }) => id === restored), false);
    assert.deepEqual(cost().execs, 3, "and what was refused is read back");
    const removed = await store.remove(one, innerPlace(slot), filePrefix, call());
    assert.match(removed.refusal!, /a volume has this fs-label/);
    assert.ok(hasSubvolume(router, `metal-csi/${filePrefix}`));
    await write("mine");
    const again = await store.removeImage(innerPlace(slot), filePrefix, call());
    assert.deepEqual(again.after.files, []);
    assert.deepEqual(router.violations.list(), []);
  },
);

contractTest(
  "a source goes before its snapshots do, and they before what was made of them",
  async (bench) => {
    const { router, store, call } = bench;
    await addInner(bench);
    await addSnapshot(bench);
    await addInner(bench, newRestoredVolume());
    await store.remove(one, innerPlace(slot), filePrefix, call());
    await store.removeImage(snapshot, snapshotPart, call());
    assert.deepEqual([hasSubvolume(router, snapshot.subvolume!.path), truth(router, slot)], [
      false,
      undefined,
    ]);
    assert.ok(hasSubvolume(router, innerPlace(restored).subvolume.path));
  },
);

contractTest(
  "files() finds by a whole path what the router spells without its first slash",
  async (bench) => {
    const { store, call } = bench;
    await addOne(bench);
    const path = imageOf(slot);
    assert.deepEqual((await store.files(path, call())).files.map((file) => file.path), [path]);
    assert.deepEqual((await store.files(path.replace("storage-pool", "orage-pool"), call())).files, []);
  },
);

contractTest("a subvolume whose snapshots hold it stays, and the router's words are told", async (bench) => {
  const { router, store, call } = bench;
  await addInner(bench);
  await addSnapshot(bench);
  await store.view(slot, filePrefix, call());
  const { after, refusal } = await store.remove(one, innerPlace(slot), filePrefix, call());
  assert.deepEqual([after.volume, after.files], [undefined, filesHolding(router, filePrefix)]);
  assert.ok(after.files.length > 0 && refusal !== undefined);
}, { behaviours: { subvolumeParent: "held" } });

contractTest("addSubvolume() makes no second one where a path holds the text", async (bench) => {
  const { router, store, call } = bench;
  await addInner(bench);
  await addSnapshot(bench);
  const later = { ...newSnapshot, path: newSnapshot.path.replace("tabcde", "tabcdf") };
  const { after, refusal } = await store.addSubvolume(later, snapshotPart, call());
  assert.deepEqual([after.files, refusal], [filesHolding(router, snapshotPart), undefined]);
  assert.equal(hasSubvolume(router, later.path), false);
});

contractTest("removeImage() leaves a subvolume in which a disk's image is", async (bench) => {
  const { router, store, call } = bench;
  await addInner(bench);
  const { after } = await store.removeImage(innerPlace(slot), filePrefix, call());
  assert.deepEqual(after.files, filesHolding(router, filePrefix));
  assert.ok(hasSubvolume(router, innerPlace(slot).subvolume.path));
});

contractTest("add() of a clone whose subvolume was made before adopts its image", async (bench) => {
  const { router, store, call } = bench;
  await addInner(bench);
  const { subvolume, makeFolder: _folder, ...volume } = newRestoredVolume();
  const made = { ...subvolume!, parent: innerPlace(slot).subvolume };
  await store.addSubvolume(made, filePrefixOf(restored), call());
  const { after } = await store.add(volume, call());
  assert.deepEqual(after.volumes.find(({ id }) => id === restored), truth(router, restored));
  assert.equal(truth(router, restored)?.sizeBytes, gib);
});

contractTest("add() adopts nothing that lies where a new image is to be", async (bench) => {
  const { router, store, call } = bench;
  await addOne(bench, "pvc-1");
  router.model.files.create(imageOf(slot).slice(1), gib, "");
  const { after } = await store.add(newVolume(), call());
  assert.equal(after.volumes.some(({ id }) => id === slot), false);
  assert.equal(truth(router, slot), undefined);
});

contractTest("add() makes no disk where the image that it is to adopt is missing", async (bench) => {
  const { router, store, call } = bench;
  await addOne(bench, "pvc-1");
  const { after, refusal } = await store.add({ ...newVolume(), sizeBytes: undefined }, call());
  assert.deepEqual([after.volumes.length, refusal], [1, undefined]);
  assert.deepEqual([truth(router, slot), hasImage(router, slot)], [undefined, false]);
});

contractTest("add() never takes another slot in silence, nor a second disk on one image", async (bench) => {
  const { router, store, call } = bench;
  await addOne(bench);
  const disks = () => router.model.disks.list().length;
  const before = disks();
  await store.add({ ...newVolume(), location: locationOf("pvc-1") }, call());
  await store.add({ ...newVolume("pvc-1"), location: locationOf(slot), sizeBytes: undefined }, call());
  assert.equal(disks(), before);
}, { behaviours: { duplicateSlot: "renamed" } });

contractTest("a copy gets its name and becomes a volume", async (bench) => {
  const { router, store, call } = bench;
  await addOne(bench);
  await store.createView(wanted(restored), call());
  const volume = newCopiedVolume();
  const { path } = volume.copied!;
  assert.deepEqual(await store.copyFile(imageOf(slot), path, call()), { done: true });
  const { after } = await store.add(volume, call());
  assert.deepEqual(after.volumes.find(({ id }) => id === restored), truth(router, restored));
  assert.equal(truth(router, restored)?.sizeBytes, gib);
  assert.deepEqual(filesHolding(router, ".part"), []);
});

contractTest("a copy whose place is taken keeps its name, and becomes no volume", async (bench) => {
  const { router, store, call } = bench;
  await addOne(bench);
  const volume = newCopiedVolume();
  const { path } = volume.copied!;
  await store.copyFile(imageOf(slot), path, call());
  await store.change(slot, record, { comment: held }, call());
  router.model.files.create(imageOf(restored).slice(1), gib, "");
  await store.add(volume, call());
  assert.equal(truth(router, restored), undefined);
  assert.ok(router.model.files.find(path.slice(1)) !== undefined);
  const renamed = await store.renameFile(path, copy.path, one, ".part", call());
  assert.deepEqual(renamed.after.files.map((file) => file.path), [path]);
});

contractTest("copyFile() to a path that is taken is not done, and changes nothing", async (bench) => {
  const { router, store, call } = bench;
  await addOne(bench);
  router.model.files.create(unfinished.slice(1), 5n, "");
  assert.deepEqual(await store.copyFile(imageOf(slot), unfinished, call()), { done: false });
  assert.equal(router.model.files.find(unfinished.slice(1))?.sizeBytes, 5n);
});

contractTest("copyFile() takes its time while everything else goes on, on one connection", async (bench) => {
  const { another, call, router } = bench;
  await addOne(bench);
  const store = another({ copyTimeoutMs: 60_000 });
  await store.probe(call());
  router.faults.arm({ match: "/file copy", nth: 1, times: 2, action: "delay", value: 1500 });
  const ends: string[] = [];
  const copies = [1, 2].map(async (index) => {
    await store.copyFile(imageOf(slot), `${unfinished}${index}`, call());
    ends.push("copy");
  });
  await systemClock.sleep(50);
  const { after } = await store.change(slot, record, { comment: held, export: { nqn, port: 4420 } }, call());
  assert.equal(after.volume?.comment, held);
  await Promise.all(Array.from({ length: 40 }, () => store.view(slot, filePrefix, call())));
  ends.push("views");
  await Promise.all(copies);
  assert.deepEqual(ends, ["views", "copy", "copy"]);
  assert.equal(new Set(router.journal.list().slice(-40).map((entry) => entry.session)).size, 1);
});

const plainSteps = { ...steps, ...copySteps };
const allSteps = { ...plainSteps, ...subvolumeSteps };

const settings: readonly (readonly [string, SimulatorOptions, typeof plainSteps?])[] = [
  ["hostile output", { behaviours: { output: "hostile" } }],
  ["RouterOS 7.21", { profile: "ros-7.21" }, steps],
  ["an XFS pool", { profile: "xfs-pool" }, plainSteps],
  ["an empty find that lacks an item id", { behaviours: { emptyFind: "item-id-error" } }],
  ["sessions that take turns", { behaviours: { interleave: true, unexport: 20, allocation: "full" } }],
  ["sizes that have to fit", { behaviours: { otherSize: "refused" } }],
];

for (const [name, options, plans = allSteps] of settings) {
  for (const [what, plan] of Object.entries(plans)) {
    contractTest(`${what}: works, and again, with ${name}`, async (bench) => {
      await bench.store.probe(bench.call());
      await plan.prepare(bench);
      for (let round = 0; round < 2; round++) {
        const { shown } = await plan.run(bench, bench.call());
        assert.deepEqual(shown, plan.truth(bench.router));
        assert.ok(plan.isDone(bench.router));
      }
    }, options);
  }
}
