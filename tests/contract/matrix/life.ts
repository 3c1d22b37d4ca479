// A volume's life on a router that works, and on one that loses answers.
import assert from "node:assert/strict";
import type { StoredVolume } from "../../../src/volume/model/inventory.ts";
import {
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
  slot,
  truth,
  wanted,
} from "../_routeros_bench.ts";
import type { Otherwise, Scenario } from "./scenario.ts";
import { assertQuiet, assertUntouched, on, shortHeld, useless } from "./store.ts";

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

export const lifeScenarios: readonly Scenario[] = [
  {
    name: "life",
    run: on((bench) => live(bench, held, nqn)),
    otherwise: [...useless, shortComments, shortNqns],
  },
];
