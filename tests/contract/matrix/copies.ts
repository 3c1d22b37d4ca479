// Copies of images, and the names that they get once they are complete.
import assert from "node:assert/strict";
import { control } from "../../support/control_port.ts";
import { systemClock } from "../../../src/host/clock.ts";
import {
  addOne,
  type Bench,
  gib,
  held,
  imageOf,
  locationOf,
  record,
  slot,
  truth,
} from "../_routeros_bench.ts";
import {
  copy,
  filesHolding,
  newCopiedVolume,
  restored,
  snapshotPart,
  unfinished,
} from "../_routeros_images.ts";
import type { Otherwise, Scenario } from "./scenario.ts";
import { assertQuiet, on, useless } from "./store.ts";

const source = { id: slot, comment: record };

/** Whether a file exists, and is complete. */
function stateOf({ router }: Bench, path: string): "none" | "partial" | "whole" {
  const file = router.model.files.find(path.slice(1));
  if (file === undefined) return "none";
  return router.model.files.isPartial(file) ? "partial" : "whole";
}

/** Routers that cannot copy a file. */
export const noCopies: Otherwise = {
  when: ({ fileCopy }) => !fileCopy,
  because: "a router that cannot copy says so, and no copy is done",
  run: on(async (bench) => {
    await addOne(bench);
    const { done, refusal } = await bench.store.copyFile(imageOf(slot), unfinished, bench.call());
    assert.equal(done, false);
    assert.notEqual(refusal, undefined);
    assert.equal(stateOf(bench, unfinished), "none");
  }),
};

/** A snapshot of a plain file is a copy under its own name. A second copy cannot take that name. */
async function keep(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addOne(bench);
  router.model.files.create(unfinished.slice(1), 5n);
  const taken = await store.copyFile(imageOf(slot), unfinished, call());
  assert.equal(taken.done, false, "a path that is taken is left alone");
  assert.equal(router.model.files.find(unfinished.slice(1))?.sizeBytes, 5n);
  router.model.files.remove(unfinished.slice(1));
  assert.deepEqual(await store.copyFile(imageOf(slot), unfinished, call()), { done: true });
  assert.equal(stateOf(bench, unfinished), "whole");
  const { after, refusal } = await store.renameFile(unfinished, copy.path, source, snapshotPart, call());
  assertQuiet(bench, refusal);
  assert.deepEqual(after.files, [{ path: copy.path, sizeBytes: gib, directory: false }]);
  assert.deepEqual(after.files, filesHolding(router, snapshotPart));
  const gone = await store.removeImage(copy, snapshotPart, call());
  assert.deepEqual([gone.after.files, stateOf(bench, imageOf(slot))], [[], "whole"]);
}

/** A copy gets its name and its disk in one command; returns whether it got the disk. */
async function becomeVolume(bench: Bench): Promise<boolean> {
  const { store, call, router } = bench;
  await addOne(bench);
  const volume = newCopiedVolume();
  await store.copyFile(imageOf(slot), volume.copied!.path, call());
  const { after, refusal } = await store.add(volume, call());
  const added = after.volumes.find(({ id }) => id === restored);
  assert.deepEqual(added, truth(router, restored));
  if (added === undefined) assert.notEqual(refusal, undefined);
  else assert.deepEqual([added.imagePath, added.sizeBytes, added.comment], [imageOf(restored), gib, record]);
  assert.deepEqual([stateOf(bench, imageOf(restored)), stateOf(bench, volume.copied!.path)], [
    "whole",
    "none",
  ]);
  return added !== undefined;
}

/**
 * The copy of a volume that was used in the meantime does not become a snapshot, nor a volume where its place is taken,
 * and keeps its temporary name.
 */
async function distrust(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addOne(bench);
  const volume = newCopiedVolume();
  await store.copyFile(imageOf(slot), volume.copied!.path, call());
  await store.change(slot, record, { comment: held }, call());
  const { path } = volume.copied!;
  const { after } = await store.renameFile(path, copy.path, source, ".part", call());
  assert.deepEqual([after.files.map((file) => file.path), stateOf(bench, copy.path)], [[path], "none"]);
  router.model.files.create(imageOf(restored).slice(1), gib);
  await store.add(volume, call());
  assert.deepEqual([truth(router, restored), stateOf(bench, path)], [undefined, "whole"]);
}

/** A copy that takes some time; returns the state of the copy when the router has reported it as done. */
async function waitFor(bench: Bench): Promise<string> {
  await addOne(bench);
  bench.router.model.delays.copyMs = 120;
  assert.deepEqual(await bench.store.copyFile(imageOf(slot), unfinished, bench.call()), { done: true });
  return stateOf(bench, unfinished);
}

/** The router reboots during a copy, with or without having reported it as done. */
async function interrupt(bench: Bench, answersAtOnce: boolean): Promise<void> {
  const { store, call, router } = bench;
  await addOne(bench);
  router.model.delays.copyMs = 60_000;
  const copying = store.copyFile(imageOf(slot), unfinished, call());
  if (answersAtOnce) await copying;
  while (stateOf(bench, unfinished) === "none") await systemClock.sleep(5);
  await control(router, "POST /reboot", { downMs: 20, disksLateMs: 0 });
  assert.equal((await copying).done, answersAtOnce);
  assert.equal(stateOf(bench, unfinished), "partial");
  const { files } = await store.files(snapshotPart, call());
  assert.deepEqual(files.map(({ path }) => path), [unfinished], "what is left of it is seen");
}

/** A file is renamed where the new name is free and, where the caller requires a disk to be unchanged, the disk is. */
async function rename(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addOne(bench);
  const { files } = router.model;
  const left = () => filesHolding(router, snapshotPart).map(({ path }) => path);
  files.create(unfinished.slice(1), 7n);
  files.create(copy.path.slice(1), 5n);
  const taken = await store.renameFile(unfinished, copy.path, undefined, snapshotPart, call());
  assertQuiet(bench, taken.refusal);
  assert.deepEqual([left(), files.find(copy.path.slice(1))?.sizeBytes], [[copy.path, unfinished], 5n]);
  files.remove(copy.path.slice(1));
  for (const guard of [{ id: slot, comment: "other" }, { id: "pvc-9", comment: record }]) {
    const { after } = await store.renameFile(unfinished, copy.path, guard, snapshotPart, call());
    assert.deepEqual(after.files.map(({ path }) => path), [unfinished]);
  }
  const shouted = { id: slot, comment: record.toUpperCase() };
  await store.renameFile(unfinished, copy.path, shouted, snapshotPart, call());
  assert.deepEqual(left(), [unfinished]);
  await store.renameFile(unfinished, copy.path, source, snapshotPart, call());
  assert.deepEqual(left(), [copy.path]);
  await store.renameFile(copy.path, unfinished, undefined, snapshotPart, call());
  assert.deepEqual(left(), [unfinished]);
}

/** A slot or an image never gets a second disk, however the router treats a slot that is taken. */
async function stayOne(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addOne(bench);
  router.model.files.create(imageOf("pvc-2").slice(1), gib);
  const before = router.model.disks.list();
  const adopted = { comment: record, sizeBytes: undefined };
  const tries = [
    { ...adopted, id: slot, location: locationOf("pvc-2") },
    { ...adopted, id: "pvc-2", location: locationOf(slot) },
    { ...adopted, id: slot, location: locationOf(slot) },
    { ...adopted, id: slot, location: locationOf("pvc-3"), sizeBytes: gib },
    { ...adopted, id: "pvc-3", location: locationOf(slot), sizeBytes: gib },
  ];
  for (const volume of tries) {
    const { after, refusal } = await store.add(volume, call());
    assertQuiet(bench, refusal);
    assert.deepEqual(after.volumes, [truth(router, slot)]);
    assert.deepEqual(router.model.disks.list(), before);
  }
  assert.equal(stateOf(bench, imageOf("pvc-3")), "none");
}

export const copyScenarios: readonly Scenario[] = [
  {
    name: "copy",
    run: on(keep),
    otherwise: [...useless, noCopies],
  },
  {
    name: "volume of a copy",
    run: on(async (bench) => assert.equal(await becomeVolume(bench), true)),
    otherwise: [
      ...useless,
      noCopies,
      {
        when: ({ adopt }) => adopt === "refused",
        because: "a router that takes over no file makes no disk of a copy, which lies there in its name",
        run: on(async (bench) => assert.equal(await becomeVolume(bench), false)),
      },
    ],
  },
  { name: "copy of what changed", run: on(distrust), otherwise: [...useless, noCopies] },
  {
    name: "slow copy",
    run: on(async (bench) => assert.equal(await waitFor(bench), "whole")),
    otherwise: [
      ...useless,
      noCopies,
      {
        when: ({ copyReturns }) => copyReturns === "at-once",
        because:
          "a router that answers at once says that a copy is done which is not: the driver must not ask it",
        run: on(async (bench) => assert.equal(await waitFor(bench), "partial")),
      },
    ],
  },
  {
    name: "copy cut off",
    run: on((bench) => interrupt(bench, false)),
    otherwise: [
      ...useless,
      noCopies,
      {
        when: ({ copyReturns }) => copyReturns === "at-once",
        because: "a router that answers at once has said that it is done: the driver must not ask it",
        run: on((bench) => interrupt(bench, true)),
      },
    ],
  },
  { name: "rename", run: on(rename), otherwise: useless },
  { name: "no second disk", run: on(stayOne), otherwise: useless },
];
