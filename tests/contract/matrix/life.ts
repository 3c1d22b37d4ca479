// A volume's life on a router that works, and on one that loses answers.
import assert from "node:assert/strict";
import type { StoredVolume } from "../../../src/volume/model/inventory.ts";
import {
  addOne,
  type Bench,
  filePrefix,
  gib,
  held,
  imageOf,
  locationOf,
  makeFolder,
  newVolume,
  nqn,
  record,
  rejectsWith,
  slot,
  truth,
  wanted,
} from "../_routeros_bench.ts";
import type { Otherwise, Scenario } from "./scenario.ts";
import { assertQuiet, assertUntouched, noExport, on, shortHeld, useless } from "./store.ts";

const noNqn: Otherwise = {
  ...noExport,
  because:
    "without an NQN of its own for each export nothing is exported, and that is said before anything is sent",
  run: on(async (bench) => {
    await addOne(bench);
    bench.cost();
    const change = { comment: held, export: { nqn, port: 4420 } };
    await rejectsWith(
      bench.store.change(slot, record, change, bench.call()),
      "precondition",
      /7\.(20\.8|17\.2)/,
    );
    assert.equal(bench.cost().execs, 0);
    assert.equal(truth(bench.router, slot)?.comment, record);
    await leave(bench);
  }),
};

const shortComments: Otherwise = {
  ...shortHeld,
  because: "a comment that the router cut is shown as it is there",
  run: on((bench) => live(bench, held.slice(0, bench.router.model.behaviours.maxComment), nqn)),
};

const shortNqns: Otherwise = {
  when: ({ maxNqn }) => maxNqn < nqn.length,
  because: "an NQN that the router cut is shown as it is there",
  run: on((bench) => live(bench, held, nqn.slice(0, bench.router.model.behaviours.maxNqn))),
};

/** The whole life of a volume; what the router shows after each step is compared with what it holds. */
async function live(bench: Bench, comment: string, exportNqn: string): Promise<void> {
  const { store, call, router } = bench;
  await store.probe(call());
  const before = await store.createView(wanted(slot), call());
  assert.deepEqual([before.volumes, before.foreign, before.files], [[], undefined, []]);
  assert.deepEqual(before.pools.map(({ mountPoint }) => mountPoint), ["storage-pool"]);
  assert.ok(before.upMs > 120_000);
  const added = await store.add({ ...newVolume(), makeFolder }, call());
  assertQuiet(bench, added.refusal);
  assert.deepEqual(added.after.volumes, [truth(router, slot)]);
  const change = { comment: held, export: { nqn, port: 4420 } };
  const on = await store.change(slot, record, change, call());
  const shown: StoredVolume = {
    ...{ id: slot, imagePath: imageOf(slot), sizeBytes: gib, comment },
    ...{ exported: true, exportNqn, exportPort: 4420 },
  };
  assertQuiet(bench, on.refusal);
  assert.deepEqual([on.after.volume, truth(router, slot)], [shown, shown]);
  const off = await store.change(slot, comment, { comment: record, export: false }, call());
  assert.deepEqual(off.after.volume, { ...shown, exported: false, comment: record });
  assert.deepEqual((await store.inventory(call())).volumes, [off.after.volume]);
  await leave(bench);
}

async function leave(bench: Bench): Promise<void> {
  const { store, call } = bench;
  const view = await store.view(slot, filePrefix, call());
  assert.deepEqual(view.files, [{ path: imageOf(slot), sizeBytes: gib, directory: false }]);
  const { after, refusal } = await store.remove(
    { id: slot, comment: record },
    locationOf(slot),
    filePrefix,
    call(),
  );
  assertQuiet(bench, refusal);
  assert.deepEqual([after.volume, after.files], [undefined, []]);
  assertUntouched(bench);
}

/**
 * Exports a volume through a driver that accepts the risk; returns the NQN of the export, and whether the driver takes
 * the router for one that fences.
 */
async function dare(bench: Bench): Promise<readonly [nqn: string, fences: boolean]> {
  const { another, call, router } = bench;
  await addOne(bench, slot, "first");
  const store = router.model.behaviours.maxSessions === 1 ? bench.store : another({ allowUnfenced: true });
  await store.view(slot, filePrefix, call());
  const { after, refusal } = await store.change(slot, "first", { export: { nqn, port: 4420 } }, call());
  assertQuiet(bench, refusal);
  assert.deepEqual(after.volume, truth(router, slot));
  assert.deepEqual(router.model.exports.list().length, 1);
  const reads = [after, await store.view(slot, filePrefix, call()), await store.inventory(call())];
  const fences = reads.map(({ unfenced }) => unfenced !== true);
  assert.equal(new Set(fences).size, 1);
  const [shown] = (await store.inventory(call())).volumes;
  assert.deepEqual([shown?.exported, shown?.exportNqn], [true, after.volume?.exportNqn]);
  return [after.volume!.exportNqn, fences[0]!];
}

export const lifeScenarios: readonly Scenario[] = [
  {
    name: "life",
    run: on((bench) => live(bench, held, nqn)),
    otherwise: [...useless, noNqn, shortComments, shortNqns],
  },
  {
    name: "unfenced",
    run: on(async (bench) => assert.deepEqual(await dare(bench), [nqn, true])),
    otherwise: [
      ...useless,
      {
        when: ({ nqn, maxSessions }) => !nqn && maxSessions === 1,
        because: "the only session is that of a driver which exports nothing",
        run: on(async (bench) => {
          await addOne(bench);
          const change = { export: { nqn, port: 4420 } };
          await rejectsWith(bench.store.change(slot, record, change, bench.call()), "precondition", /fence/);
          assert.equal((await bench.store.view(slot, filePrefix, bench.call())).unfenced, true);
        }),
      },
      {
        when: noExport.when,
        because: "the router names the export after the slot, and every look says that nobody can be fenced",
        run: on(async (bench) => assert.deepEqual(await dare(bench), [slot, false])),
      },
      {
        when: ({ maxNqn }) => maxNqn < nqn.length,
        because: "an NQN that the router cut is shown as it is there",
        run: on(async (bench) => {
          const { maxNqn } = bench.router.model.behaviours;
          assert.deepEqual(await dare(bench), [nqn.slice(0, maxNqn), true]);
        }),
      },
    ],
  },
];
