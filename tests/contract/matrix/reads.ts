// What the driver reads: texts of every kind, long lists, and objects that a router does not show.
import assert from "node:assert/strict";
import { control } from "../../support/control_port.ts";
import { minCommand } from "../../../src/router_profile/limits.ts";
import { anySnapshot } from "../../../src/volume/model/snapshots/snapshots.ts";
import {
  addOne,
  type Bench,
  filePrefix,
  filePrefixOf,
  folder,
  gib,
  hasImage,
  locationOf,
  makeFolder,
  newVolume,
  record,
  rejectsWith,
  slot,
  truth,
  wanted,
} from "../_routeros_bench.ts";
import type { Scenario } from "./scenario.ts";
import { assertQuiet, assertUntouched, noRose, on, useless } from "./store.ts";

const nasty: readonly string[] = [
  String.raw`a\b \n \r \t \_ \41 \"`,
  `"; /disk remove [find]; :put "`,
  "$HOME ${x} $[/quit] $(1+1)",
  `[/system/reboot] (1+1) {x}; # not a comment`,
  "it's 100% `ok` ~ ^ | & ! ? * = <>, .",
  "ends in a backslash \\",
  " leading and trailing ",
  "12345678901234567890",
  "0x1F",
  "yes",
  "[]",
  "$",
  '"',
];

const long: readonly string[] = [
  Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join(""),
  '"\\$'.repeat(60),
  "x".repeat(255),
];

/** Each comment is set, read back and compared. */
async function comment(bench: Bench, comments: readonly string[]): Promise<void> {
  const { store, call, router } = bench;
  const { maxComment } = router.model.behaviours;
  await addOne(bench, slot, "first");
  let before = "first";
  for (const comment of comments) {
    const { after } = await store.change(slot, before, { comment }, call());
    before = comment.slice(0, maxComment);
    assert.equal(after.volume?.comment, before);
    assert.equal(truth(router, slot)?.comment, before);
  }
  await addOne(bench, "pvc-1", nasty[1]);
  assert.equal(truth(router, "pvc-1")?.comment, nasty[1]);
  const { after } = await store.add({ ...newVolume("pvc-2", "y".repeat(300)) }, call());
  assert.deepEqual(after.volumes.find(({ id }) => id === "pvc-2"), truth(router, "pvc-2"));
  assert.equal(truth(router, "pvc-2")?.comment, "y".repeat(300).slice(0, maxComment));
  assert.equal(
    (await store.remove({ id: slot, comment: before }, locationOf(slot), filePrefix, call())).after.volume,
    undefined,
  );
  assert.ok(hasImage(router, "pvc-1"));
}

/** The uptime is what a list reads last: a reboot in its middle shows. */
function assertUptimeLast({ router }: Bench): void {
  assert.match(router.journal.list().at(-1)!.command, /\/system resource print as-value\]\]\.[^:]*$/);
}

/** Everything is listed, exactly once; returns the number of commands. */
async function list(bench: Bench): Promise<number> {
  const { store, call, router, cost } = bench;
  const all = router.model.disks.list().filter((disk) => disk.type === "file").map((disk) => disk.slot)
    .toSorted();
  assert.equal(all.length, 150);
  cost();
  assert.deepEqual((await store.inventory(call(60_000))).volumes.map(({ id }) => id), all);
  const { execs } = cost();
  assertUptimeLast(bench);
  const view = await store.createView(wanted("seed-00001"), call(60_000));
  assertUptimeLast(bench);
  assert.deepEqual(view.volumes.map(({ id }) => id), all);
  assert.equal(view.pools.length, 1);
  return execs;
}

const full = { seedDisks: 150 };

/**
 * Lists the snapshots of two volumes as plain files, and one that is still being copied; returns the number of
 * commands.
 */
async function listSnapshots(bench: Bench): Promise<number> {
  const { store, call, router, cost } = bench;
  const names = Array.from({ length: 60 }, (_, index) => {
    const hex = (BigInt(index + 1) * 0x9e3779b97f4a7c15f39cc0605ceden).toString(16).slice(-28).padStart(
      28,
      "0",
    );
    return `snap-${hex}.${index % 2 === 0 ? slot : "pvc-2"}.tabcde.n.1a2b3c4d.img${
      index === 7 ? ".00ff00ff.part" : ""
    }`;
  });
  const paths = names.map((name) => `${folder}/${name}`);
  router.model.files.makeDirectories(folder.slice(1));
  for (const path of paths) router.model.files.create(path.slice(1), gib);
  router.model.files.create(`${folder.slice(1)}/notes.txt`, 5n);
  await store.probe(call());
  cost();
  const { files } = await store.files(anySnapshot, call(60_000));
  const { execs } = cost();
  assertUptimeLast(bench);
  assert.deepEqual(files.map(({ path }) => path).toSorted(), paths.toSorted());
  assert.ok(files.every(({ sizeBytes, directory }) => sizeBytes === gib && !directory));
  const ofOne = await store.files(`.${slot}.`, call(60_000));
  assert.equal(ofOne.files.length, 30);
  const view = await store.createView(wanted("pvc-9"), call(60_000));
  assert.deepEqual(view.files.map(({ path }) => path).toSorted(), [folder, ...paths].toSorted());
  return execs;
}

export const readScenarios: readonly Scenario[] = [
  {
    name: "comments",
    run: on((bench) => comment(bench, [...nasty, ...long])),
    otherwise: [
      ...useless,
      {
        when: ({ maxComment }) => maxComment < 255,
        because: "long comments lose their end, and are shown and compared as they are there",
        run: on((bench) => comment(bench, [...nasty, ...long])),
      },
    ],
  },
  {
    name: "150 disks",
    run: on(async (bench) => assert.equal(await list(bench), 1), full),
    otherwise: [
      noRose,
      {
        when: ({ maxCommand }) => maxCommand < minCommand,
        because: "a router that takes no command as long as they are is not read",
        run: on((bench) =>
          rejectsWith(bench.store.createView(wanted(slot), bench.call()), "unavailable", /lost/)
        ),
      },
      {
        when: ({ maxPut }) => maxPut < 40_000,
        because: "a limited output is listed in parts",
        run: on(async (bench) => assert.ok(await list(bench) > 10), full),
      },
    ],
  },
  {
    name: "60 snapshots",
    run: on(async (bench) => assert.equal(await listSnapshots(bench), 1)),
    otherwise: [
      ...useless,
      {
        when: ({ maxPut }) => maxPut < 8192,
        because: "a limited output is listed in parts",
        run: on(async (bench) => assert.ok(await listSnapshots(bench) > 2)),
      },
    ],
  },
  {
    name: "reboot",
    run: on(async (bench) => {
      const { store, call, router } = bench;
      await addOne(bench);
      const before = call();
      await store.view(slot, filePrefix, before);
      await control(router, "POST /reboot", { downMs: 20, disksLateMs: 60_000 });
      const view = await store.view(slot, filePrefix, call());
      assert.ok(view.upMs < 60_000, "whoever asks learns that it was not long ago");
      assert.equal(view.volume, undefined);
      await rejectsWith(
        store.removeImage(locationOf(slot), filePrefix, before),
        "unavailable",
        /read again/,
      );
      assert.ok(hasImage(router, slot));
    }),
    otherwise: useless,
  },
  {
    name: "foreign disks",
    run: on(async (bench) => {
      const { store, call, router } = bench;
      const id = "storage-pool";
      const [location, filePrefix] = [locationOf(id), filePrefixOf(id)];
      const pool = router.model.disks.findBySlot(id);
      const view = await store.view(id, filePrefix, call());
      assert.deepEqual([view.foreign?.id, view.volume], [id, undefined]);
      await store.change(id, record, { comment: "mine", export: false }, call());
      await store.remove({ id, comment: record }, location, filePrefix, call());
      await store.removeImage(location, filePrefix, call());
      const { after, refusal } = await store.add({ ...newVolume(id), makeFolder }, call());
      assertQuiet(bench, refusal);
      assert.deepEqual(after.volumes, []);
      assert.deepEqual(router.model.disks.findBySlot(id), pool);
      assertUntouched(bench);
    }),
    otherwise: useless,
  },
];
