// Disks and the files behind them: the driver keeps, uses or refuses data by what the router says about a file.
import assert from "node:assert/strict";
import type { Router } from "../../../src/simulator/model/router.ts";
import { systemClock } from "../../../src/host/clock.ts";
import {
  addOne,
  type Bench,
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
} from "../_routeros_bench.ts";
import type { Scenario } from "./scenario.ts";
import { assertQuiet, assertUntouched, on, useless } from "./store.ts";

/** A file with the volume's name that no disk uses. */
function leaveFile(router: Router, sizeBytes: bigint): void {
  router.files.makeDirectories(folder.slice(1));
  router.files.create(imageOf(slot).slice(1), sizeBytes);
}

/**
 * Tries to add a disk on an existing file: the file is noticed and stays unchanged, and its data never becomes a blank
 * volume.
 */
async function addOnFile(bench: Bench, fileBytes: bigint): Promise<void> {
  const { store, call, router } = bench;
  leaveFile(router.model, fileBytes);
  const seen = [{ path: folder, sizeBytes: 0n, directory: true }, {
    path: imageOf(slot),
    sizeBytes: fileBytes,
    directory: false,
  }];
  assert.deepEqual((await store.createView(wanted(slot), call())).files, seen);
  const { after, refusal } = await store.add(newVolume(), call());
  assertQuiet(bench, refusal);
  assert.deepEqual([after.volumes, truth(router, slot)], [[], undefined]);
  assert.deepEqual((await store.createView(wanted(slot), call())).files, seen);
}

/**
 * Adds a disk on an existing file without changing it; returns the size of the disk, undefined when there is no disk.
 */
async function adopt(bench: Bench, fileBytes: bigint): Promise<bigint | undefined> {
  const { store, call, router } = bench;
  leaveFile(router.model, fileBytes);
  const { after } = await store.add({ ...newVolume(), sizeBytes: undefined }, call());
  const added = after.volumes.find((volume) => volume.id === slot);
  assert.deepEqual(added, truth(router, slot));
  assert.ok(hasImage(router, slot), "the file is there whatever the router did");
  return added?.sizeBytes;
}

/** Grows an exported volume; returns the sizes that the router reports and that connected nodes see. */
async function grow(bench: Bench): Promise<readonly [reported: bigint, attached: bigint]> {
  const { store, call, router } = bench;
  await addOne(bench);
  await store.change(slot, record, { comment: held, export: { nqn, port: 4420 } }, call());
  const { after } = await store.change(slot, truth(router, slot)!.comment, { sizeBytes: 2n * gib }, call());
  assert.deepEqual(after.volume, truth(router, slot));
  return [after.volume!.sizeBytes, router.model.disks.findBySlot(slot)!.attachedBytes];
}

/** Exports a volume and withdraws it; returns what the router serves right after the withdrawal. */
async function withdraw(bench: Bench): Promise<readonly string[]> {
  const { store, call, router } = bench;
  await addOne(bench);
  await store.change(slot, record, { export: { nqn, port: 4420 } }, call());
  assert.equal(router.model.exports.list().length, 1);
  const { after } = await store.change(slot, record, { export: false }, call());
  assert.equal(after.volume?.exported, false);
  return router.model.exports.list().map(String);
}

async function keepShared(bench: Bench): Promise<void> {
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
  assert.ok(router.model.disks.findBySlot("theirs") !== undefined);
}

async function addBeyond(bench: Bench): Promise<boolean> {
  const { store, call, router } = bench;
  const pool = router.model.disks.findBySlot("storage-pool")!;
  const free = router.model.freeBytes({ ...pool, pool: pool.pool! });
  const { after } = await store.add({ ...newVolume(), sizeBytes: free + gib, makeFolder }, call());
  const added = after.volumes.find((volume) => volume.id === slot);
  assert.deepEqual(added, truth(router, slot));
  if (added === undefined) assertUntouched(bench);
  return added !== undefined;
}

/** Adds a volume and grows it, both to sizes that are no multiple of a sector; returns the sizes on the router. */
async function addOdd(bench: Bench): Promise<readonly (bigint | undefined)[]> {
  const { store, call, router } = bench;
  const odd = { ...newVolume(), sizeBytes: gib + 1n, makeFolder };
  const { after, refusal } = await store.add(odd, call());
  const added = after.volumes.find((volume) => volume.id === slot);
  assert.deepEqual(added, truth(router, slot));
  if (added === undefined) {
    assert.notEqual(refusal, undefined);
    assertUntouched(bench);
    return [undefined];
  }
  const grown = await store.change(slot, record, { sizeBytes: 2n * gib + 700n }, call());
  assert.deepEqual(grown.after.volume, truth(router, slot));
  return [added.sizeBytes, grown.after.volume?.sizeBytes];
}

export const fileScenarios: readonly Scenario[] = [
  {
    name: "file there",
    run: on((bench) => addOnFile(bench, gib)),
    otherwise: useless,
  },
  {
    name: "larger file there",
    run: on((bench) => addOnFile(bench, 2n * gib)),
    otherwise: useless,
  },
  {
    name: "file to adopt",
    run: on(async (bench) => assert.equal(await adopt(bench, 2n * gib), 2n * gib)),
    otherwise: [
      ...useless,
      {
        when: ({ adopt }) => adopt === "refused",
        because: "a file that is there is not taken over",
        run: on(async (bench) => assert.equal(await adopt(bench, 2n * gib), undefined)),
      },
    ],
  },
  {
    name: "nothing to adopt",
    run: on(async (bench) => {
      const { store, call } = bench;
      const { after } = await store.add({ ...newVolume(), sizeBytes: undefined, makeFolder }, call());
      assert.deepEqual(after.volumes, []);
      assertUntouched(bench);
    }),
    otherwise: useless,
  },
  {
    name: "growth",
    run: on(async (bench) => assert.deepEqual(await grow(bench), [2n * gib, 2n * gib])),
    otherwise: [
      ...useless,
      {
        when: ({ grow }) => grow === "after-toggle",
        because: "the router tells the new size, and connected nodes do not see it",
        run: on(async (bench) => assert.deepEqual(await grow(bench), [2n * gib, gib])),
      },
      {
        when: ({ grow }) => grow === "never",
        because: "the router takes the new size, and tells that nothing has come of it",
        run: on(async (bench) => assert.deepEqual(await grow(bench), [gib, gib])),
      },
    ],
  },
  {
    name: "withdrawal",
    run: on(async (bench) => assert.deepEqual(await withdraw(bench), [])),
    otherwise: [
      ...useless,
      {
        when: ({ unexport }) => typeof unexport === "number" && unexport > 0,
        because: "the export is off, and goes on being served for a while: the grace is there for that",
        run: on(async (bench) => {
          assert.equal((await withdraw(bench)).length, 1);
          await systemClock.sleep(Number(bench.router.model.behaviours.unexport) + 50);
          assert.deepEqual(bench.router.model.exports.list(), []);
        }),
      },
    ],
  },
  { name: "shared image", run: on(keepShared), otherwise: useless },
  {
    name: "no folder",
    run: on(async (bench) => {
      const { after, refusal } = await bench.store.add(newVolume(), bench.call());
      assert.notEqual(refusal, undefined);
      assert.deepEqual(after.volumes, []);
      assertUntouched(bench);
    }),
    otherwise: useless,
  },
  {
    name: "beyond the pool",
    run: on(async (bench) => assert.equal(await addBeyond(bench), true)),
    otherwise: [
      ...useless,
      {
        when: ({ allocation }) => allocation === "full",
        because: "a router that sets all of a file's space aside refuses what it has no room for",
        run: on(async (bench) => assert.equal(await addBeyond(bench), false)),
      },
    ],
  },
  {
    name: "odd size",
    run: on(async (bench) => assert.deepEqual(await addOdd(bench), [gib + 1n, 2n * gib + 700n])),
    otherwise: [
      ...useless,
      {
        when: ({ grow }) => grow === "never",
        because: "nothing grows, and the size is told as it is",
        run: on(async (bench) => assert.deepEqual(await addOdd(bench), [gib + 1n, gib + 1n])),
      },
    ],
  },
];
