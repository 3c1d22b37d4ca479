// The RouterOS adapter against the simulator's real SSH server: what it asks, which answers it believes, and how few
// commands it needs.
import assert from "node:assert/strict";
import { rejectsWith } from "../fakes/volume_errors.ts";
import {
  addOne,
  contractTest,
  filePrefix,
  folder,
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

contractTest(
  "add() makes a missing folder once, also for many first volumes at the same time",
  async (bench) => {
    const { store, call, router } = bench;
    await store.createView(wanted(slot), call());
    const ids = Array.from({ length: 20 }, (_, i) => `pvc-${i}`);
    const outcomes = await Promise.all(
      ids.map((id) => store.add({ ...newVolume(id), makeFolder }, call())),
    );
    assert.deepEqual(outcomes.map(({ refusal }) => refusal), ids.map(() => undefined));
    assert.ok(ids.every((id) => hasImage(router, id)));
  },
);

contractTest(
  "comments of every printable character come back unchanged, and can be compared with",
  async (bench) => {
    const { store, call, router } = bench;
    const nasty = [
      String.raw`a\b`,
      String.raw`\n \r \t \_ \41 \"`,
      `"; /disk remove [find]; :put "`,
      "$HOME ${x} $[/quit]",
      `[/system/reboot] (1+1) {x}; # not a comment`,
      "it's 100% `ok` ~ ^ | & ! ? * = <>, .",
      "ends in a backslash \\",
      "$",
      '"',
      " leading and trailing ",
      "12345678901234567890",
      "0x1F",
      "yes",
      Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join(""),
      "x".repeat(255),
      '"\\$'.repeat(60),
    ];
    await addOne(bench, slot, "first");
    let before = "first";
    for (const comment of nasty) {
      const { after } = await store.change(slot, before, { comment }, call());
      assert.equal(after.volume?.comment, comment);
      assert.equal(truth(router, slot)?.comment, comment);
      before = comment;
    }
    await addOne(bench, "pvc-1", nasty[2]);
    assert.equal(truth(router, "pvc-1")?.comment, nasty[2]);
    assert.equal(
      (await store.remove({ id: slot, comment: before }, locationOf(slot), filePrefix, call())).after.volume,
      undefined,
    );
    assert.ok(hasImage(router, "pvc-1"));
  },
);

contractTest("a comment that somebody else has changed stops change() and remove()", async (bench) => {
  const { store, call, router } = bench;
  await addOne(bench);
  const changed = await store.change(
    slot,
    `${record} `,
    { comment: "mine", export: { nqn, port: 4420 } },
    call(),
  );
  assert.deepEqual(changed.after.volume, truth(router, slot));
  assert.equal(truth(router, slot)?.comment, record);
  assert.equal(truth(router, slot)?.exported, false);
  const removed = await store.remove({ id: slot, comment: "other" }, locationOf(slot), filePrefix, call());
  assert.deepEqual(removed.after.volume, truth(router, slot));
  assert.ok(hasImage(router, slot));
  const without = await store.removeImage(locationOf(slot), filePrefix, call());
  assert.equal(without.after.files.length, 1);
  assert.ok(hasImage(router, slot), "an image in use stays");
});

contractTest("remove() leaves an image that another disk uses, and shows who", async (bench) => {
  const { store, call, router } = bench;
  await addOne(bench);
  const disk = router.model.disks.findBySlot(slot)!;
  router.model.disks.add({ ...disk, slot: "theirs", comment: "" });
  await store.view(slot, filePrefix, call());
  const { after } = await store.remove({ id: slot, comment: record }, locationOf(slot), filePrefix, call());
  assert.equal(after.volume, undefined);
  assert.deepEqual(after.sharers.map(({ id }) => id), ["theirs"]);
  assert.equal(after.files.length, 1);
  assert.ok(hasImage(router, slot));
});

contractTest("a slot with something else in it is foreign, and stays as it is", async (bench) => {
  const { store, call } = bench;
  const view = await store.view("storage-pool", filePrefix, call());
  assert.equal(view.foreign?.id, "storage-pool");
  assert.equal(view.volume, undefined);
  const { after } = await store.add(newVolume("storage-pool"), call());
  assert.deepEqual(after.volumes, []);
  assert.deepEqual((await store.view("storage-pool", filePrefix, call())).foreign, view.foreign);
});

contractTest("inventory() lists 5000 volumes in one command", async ({ store, call, cost }) => {
  const { volumes } = await store.inventory(call());
  assert.equal(volumes.length, 5000);
  assert.equal(new Set(volumes.map(({ id }) => id)).size, 5000);
  assert.deepEqual(cost(), { execs: 1, statements: 2 });
}, { seedDisks: 5000 });

contractTest(
  "a list comes in parts where the output is limited, and the uptime last: a reboot in its middle shows",
  async (bench) => {
    const { store, call, router } = bench;
    await addOne(bench);
    const hex = (i: number) => i.toString(16).padStart(2, "0");
    const snapshots = Array.from({ length: 99 }, (_, i) => `${folder}/snap-${hex(i)}.s0.x.n.1a2b3c4d.img`);
    for (const path of snapshots) router.model.files.create(path.slice(1), gib, "");
    const all = router.model.disks.list().filter((disk) => disk.filePath !== "").map((disk) => disk.slot)
      .toSorted();
    const assertUptimeLast = () =>
      assert.match(router.journal.list().at(-1)!.command, /\/system resource print as-value\]\]\.[^:]*$/);
    assert.deepEqual((await store.inventory(call(60_000))).volumes.map(({ id }) => id), all);
    assertUptimeLast();
    const view = await store.createView(wanted(slot), call(60_000));
    assertUptimeLast();
    assert.deepEqual(view.volumes.map(({ id }) => id), all);
    assert.deepEqual(view.files.map(({ path }) => path).toSorted(), [folder, imageOf(slot), ...snapshots]);
    assert.equal(view.pools.length, 1);
    const { files, pools } = await store.files("/snap-", call(60_000));
    assertUptimeLast();
    assert.deepEqual(files.map(({ path }) => path), snapshots);
    assert.equal(pools.length, 1);
  },
  { seedDisks: 300, behaviours: { maxPut: 8000 } },
);

contractTest("200 volumes at once: none fails, one connection, eight channels at most", async (bench) => {
  const { store, call, router } = bench;
  const ids = Array.from({ length: 200 }, (_, i) => `pvc-${i}`);
  await Promise.all(ids.map(async (id) => {
    const context = call(60_000);
    await store.createView(wanted(id), context);
    const { after } = await store.add({ ...newVolume(id), makeFolder }, context);
    assert.ok(after.volumes.some((volume) => volume.id === id));
  }));
  assert.equal(router.model.disks.list().filter((disk) => disk.filePath !== "").length, 200);
  assert.equal(new Set(router.journal.list().map((entry) => entry.session)).size, 1);
}, { behaviours: { maxSessions: 1 } });

contractTest(
  "a reboot between two looks shows in the uptime, and no connection outlives it",
  async (bench) => {
    const { store, call, router } = bench;
    await addOne(bench);
    const before = call();
    await store.view(slot, filePrefix, before);
    const response = await fetch(`${router.controlUrl}/reboot`, {
      method: "POST",
      body: JSON.stringify({ downMs: 100, disksLateMs: 60_000 }),
    });
    await response.body?.cancel();
    const view = await store.view(slot, filePrefix, call());
    assert.ok(view.upMs < 60_000, String(view.upMs));
    assert.equal(view.volume, undefined);
    await rejectsWith(
      store.removeImage(locationOf(slot), filePrefix, before),
      "unavailable",
      /read again/,
    );
    assert.ok(hasImage(router, slot));
  },
);
