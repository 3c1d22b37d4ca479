// Several drivers change one object, and many calls change many objects at the same time.
import assert from "node:assert/strict";
import {
  addOne,
  type Bench,
  filePrefix,
  hasImage,
  held,
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
import { on, useless } from "./store.ts";

async function loseComparison(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addOne(bench);
  for (const expected of [`${record} `, ` ${record}`, record.slice(0, -1), record.slice(1), "", ".*", held]) {
    const { after } = await store.change(slot, expected, { comment: "mine", export: false }, call());
    assert.deepEqual(after.volume, truth(router, slot));
    assert.equal(truth(router, slot)?.comment, record);
    const removed = await store.remove({ id: slot, comment: expected }, locationOf(slot), filePrefix, call());
    assert.deepEqual(removed.after.volume, truth(router, slot));
    assert.equal(truth(router, slot)?.comment, record);
    assert.ok(hasImage(router, slot));
  }
}

/** Two drivers want to change one record, each by what it has read. */
async function raceForOne(bench: Bench): Promise<{ readonly believers: number }> {
  const { store, call, router, another } = bench;
  await addOne(bench);
  const stores = [store, another()];
  for (const one of stores) await one.view(slot, filePrefix, call());
  const outcomes = await Promise.all(
    stores.map((one, index) => one.change(slot, record, { comment: `mine ${index}` }, call())),
  );
  const last = truth(router, slot)?.comment;
  assert.ok(last === "mine 0" || last === "mine 1", last);
  const believes = outcomes.map(({ after }, index) => after.volume?.comment === `mine ${index}`);
  assert.ok(believes[Number(last.at(-1))], "whoever came last knows it");
  return { believers: believes.filter(Boolean).length };
}

/**
 * Many first volumes are added at the same time; returns those that were not added, after checking that they left
 * nothing.
 */
async function crowd(
  { store, call, router }: Bench,
  ids: readonly string[],
  reads: boolean,
): Promise<string[]> {
  const left = await Promise.all(ids.map(async (id) => {
    const context = call(60_000);
    if (reads) await store.createView(wanted(id), context);
    const { after, refusal } = await store.add({ ...newVolume(id), makeFolder }, context);
    const added = after.volumes.find((volume) => volume.id === id);
    assert.deepEqual(added, truth(router, id));
    assert.equal(added !== undefined, hasImage(router, id));
    if (added === undefined) assert.notEqual(refusal, undefined);
    return added === undefined ? [id] : [];
  }));
  assert.equal(new Set(router.journal.list().map((entry) => entry.session)).size, 1, "one connection");
  return left.flat();
}

function many(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `pvc-${index}`);
}

/** Many first volumes, at a router that runs one session at a time and at one where sessions take turns. */
function crowding(count: number, reads: boolean): Pick<Scenario, "run" | "otherwise"> {
  return {
    run: on(async (bench) => assert.deepEqual(await crowd(bench, many(count), reads), [])),
    otherwise: [
      ...useless,
      {
        when: ({ interleave }) => interleave,
        because:
          "whoever sees no folder and then finds it made by another is refused; trying again gets there",
        run: on(async (bench) => {
          const left = await crowd(bench, many(count), reads);
          assert.deepEqual(await crowd(bench, left, true), []);
        }),
      },
    ],
  };
}

export const raceScenarios: readonly Scenario[] = [
  { name: "lost comparison", run: on(loseComparison), otherwise: useless },
  {
    name: "other case",
    run: on(async (bench) => {
      await addOne(bench);
      const { after } = await bench.store.change(
        slot,
        record.toUpperCase(),
        { comment: "mine" },
        bench.call(),
      );
      assert.equal(after.volume?.comment, record);
      assert.equal(truth(bench.router, slot)?.comment, record);
    }),
    otherwise: useless,
  },
  {
    name: "two at once",
    run: on(async (bench) => assert.equal((await raceForOne(bench)).believers, 1)),
    otherwise: [
      ...useless,
      {
        when: ({ maxSessions }) => maxSessions === 1,
        because: "a second driver finds no session left: it is told so, and changes nothing",
        run: on(async (bench) => {
          const { another, call, router } = bench;
          await addOne(bench);
          await rejectsWith(
            another().change(slot, record, { comment: "mine" }, call()),
            "unavailable",
            /3 times/,
          );
          assert.equal(truth(router, slot)?.comment, record);
          assert.ok(router.violations.list().every(({ rule }) => rule === "session-limit"));
          router.violations.clear();
        }),
      },
      {
        when: ({ interleave }) => interleave,
        because: "where sessions take turns between a find and its verb both may win; the last one stays",
        run: on(async (bench) => void await raceForOne(bench)),
      },
    ],
  },
  { name: "many at once", ...crowding(24, true) },
  { name: "one folder", ...crowding(12, false) },
];
