// The RouterOS adapter against the simulator's real SSH server: how few commands it needs, and what it does where
// several must follow each other. What every kind of router is asked is in matrix/.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { neverUsedMark } from "../../src/volume/model/layout.ts";
import { typeTo } from "../support/simulated_router.ts";
import {
  addOne,
  contractTest,
  filePrefix,
  filePrefixOf,
  gib,
  hasImage,
  held,
  imageOf,
  locationOf,
  makeFolder,
  newVolume,
  nqn,
  record,
  slot,
  truth,
  wanted,
} from "./_routeros_bench.ts";
import {
  addInner,
  addSnapshot,
  filesHolding,
  hasSubvolume,
  innerPlace,
  label,
  newInnerVolume,
  newRestoredVolume,
  restored,
} from "./_routeros_images.ts";

const one = { id: slot, comment: record };

contractTest("a volume's whole life takes one command a step, of at most four statements", async (bench) => {
  const { router, store, call, cost } = bench;
  const empty = await store.createView(wanted(slot), call());
  assert.deepEqual({ ...empty, upMs: 0 }, {
    volumes: [],
    foreign: undefined,
    files: [],
    pools: [{
      mountPoint: "storage-pool",
      filesystem: "btrfs",
      sizeBytes: 7681574174720n,
      freeBytes: empty.pools[0]!.freeBytes,
      state: "clean",
      subvolumeLabel: "storage-pool-fs",
    }],
    upMs: 0,
  });
  assert.ok(empty.upMs > 120_000);
  assert.deepEqual(cost(), { execs: 1, statements: 3 });

  const added = await store.add({ ...newVolume(), makeFolder }, call());
  assert.deepEqual(cost(), { execs: 1, statements: 3 });
  assert.equal(added.refusal, undefined);
  assert.deepEqual(added.after.volumes, [truth(router, slot)]);
  assert.ok(added.after.upMs >= empty.upMs);

  const on = await store.change(slot, record, { comment: held, export: { nqn, port: 4420 } }, call());
  assert.deepEqual(cost(), { execs: 1, statements: 2 });
  assert.deepEqual(on.after.volume, {
    ...truth(router, slot),
    exported: true,
    exportNqn: nqn,
    comment: held,
  });

  const grown = await store.change(slot, held, { sizeBytes: 2n * gib }, call());
  assert.equal(grown.after.volume?.sizeBytes, 2n * gib);
  const off = await store.change(slot, held, { comment: record, export: false }, call());
  assert.equal(off.after.volume?.exported, false);
  assert.deepEqual(cost(), { execs: 2, statements: 4 });

  const view = await store.view(slot, filePrefix, call());
  assert.deepEqual(view.volume, truth(router, slot));
  assert.deepEqual(view.files, [{ path: imageOf(slot), sizeBytes: 2n * gib, directory: false }]);
  assert.deepEqual(cost(), { execs: 1, statements: 3 });
  assert.deepEqual((await store.inventory(call())).volumes, [truth(router, slot)]);
  assert.deepEqual(cost(), { execs: 1, statements: 2 });

  const removed = await store.remove({ id: slot, comment: record }, locationOf(slot), filePrefix, call());
  assert.deepEqual(cost(), { execs: 1, statements: 4 });
  assert.deepEqual([removed.after.volume, removed.after.files, removed.refusal], [undefined, [], undefined]);
  assert.deepEqual([truth(router, slot), hasImage(router, slot)], [undefined, false]);
});

contractTest("inventory() lists 5000 volumes in one command", async ({ store, call, cost }) => {
  const { volumes } = await store.inventory(call());
  assert.equal(volumes.length, 5000);
  assert.equal(new Set(volumes.map(({ id }) => id)).size, 5000);
  assert.deepEqual(cost(), { execs: 1, statements: 2 });
}, { seedDisks: 5000 });

contractTest("a volume in a subvolume takes two commands to make, and two to be rid of", async (bench) => {
  const { router, store, call, cost } = bench;
  const empty = await store.createView(wanted(slot), call());
  assert.equal(empty.pools[0]?.subvolumeLabel, label);
  await store.add(newInnerVolume(), call());
  assert.deepEqual(cost(), { execs: 2, statements: 7 });
  const view = await store.view(slot, filePrefix, call());
  await store.remove(view.volume!, innerPlace(slot), filePrefix, call());
  assert.deepEqual(cost(), { execs: 2, statements: 7 });
  assert.equal(hasSubvolume(router, `metal-csi/${filePrefix}`), false);
});

contractTest(
  "a snapshot in a subvolume takes one command, and so does a volume made of it",
  async (bench) => {
    const { store, call, cost } = bench;
    await addInner(bench);
    cost();
    await addSnapshot(bench);
    assert.deepEqual(cost(), { execs: 1, statements: 3 });
    await store.createView(wanted(restored), call());
    cost();
    const { makeFolder: _folder, ...volume } = newRestoredVolume();
    await store.add(volume, call());
    assert.deepEqual(cost(), { execs: 1, statements: 2 });
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
    const write = (text: string) =>
      control(router, `PATCH /disks/${tenant}`, { "fs-label": text, "pool-fs": "btrfs" });
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
