// Subvolumes: snapshots of volumes, volumes made from snapshots, and when each of them can be removed.
import assert from "node:assert/strict";
import { anySnapshot } from "../../../src/volume/model/snapshots/snapshots.ts";
import {
  type Bench,
  filePrefix,
  filePrefixOf,
  gib,
  record,
  rejectsWith,
  slot,
  truth,
  wanted,
} from "../_routeros_bench.ts";
import {
  addInner,
  addSnapshot,
  filesHolding,
  hasSubvolume,
  innerPlace,
  newInnerVolume,
  newRestoredVolume,
  newSnapshot,
  restored,
  snapshot,
  snapshotPart,
  subvolumeIn,
} from "../_routeros_images.ts";
import type { Otherwise, RouterKind, Scenario } from "./scenario.ts";
import { assertQuiet, assertUntouched, on, useless } from "./store.ts";

const source = { id: slot, comment: record };
const clone = innerPlace(restored);
const newClone = { ...clone.subvolume, parent: snapshot.subvolume!, readOnly: false };

/**
 * Where volumes do not lie in subvolumes, calls about subvolumes make no disk and no subvolume, and their answers leave
 * no doubt about it.
 */
async function refuseAll(bench: Bench): Promise<void> {
  const { store, call } = bench;
  await store.createView(wanted(slot), call());
  const { after } = await store.add(newInnerVolume(), call());
  assert.deepEqual(after.volumes, []);
  const outcome = await store.addSubvolume(newSnapshot, snapshotPart, call());
  assert.deepEqual(outcome.after.files, []);
  const { after: left } = await store.removeImage(snapshot, snapshotPart, call());
  assert.deepEqual(left.files, []);
  assertUntouched(bench);
}

/** Routers that are of no use, or that have no subvolumes where volumes lie. */
export const withoutSubvolumes: readonly Otherwise[] = [
  ...useless,
  {
    when: ({ btrfs }) => !btrfs,
    because: "there is no Btrfs to have subvolumes",
    run: on(refuseAll),
  },
  {
    when: ({ subvolumeNames }) => subvolumeNames === "flat",
    because: "subvolumes can be at the top only, where these are not: each is refused",
    run: on(refuseAll),
  },
];

/** A snapshot is made once, appears in every way of listing it, and is removed without its source. */
async function freeze(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addInner(bench);
  const lasting = filesHolding(router, `/${filePrefix}`);
  const made = await store.addSubvolume(newSnapshot, snapshotPart, call());
  assertQuiet(bench, made.refusal);
  const shown = filesHolding(router, snapshotPart);
  assert.deepEqual(made.after.files, shown);
  assert.deepEqual(shown.map(({ path, sizeBytes }) => [path, sizeBytes]), [
    [snapshot.path.slice(0, -"/disk.img".length), 0n],
    [snapshot.path, gib],
  ]);
  assert.deepEqual(subvolumeIn(router, snapshot.subvolume!.path), {
    readOnly: true,
    parentName: filePrefix,
  });
  const rooted = snapshot.path.slice(0, snapshot.path.indexOf(snapshotPart)) + snapshotPart;
  for (const part of [anySnapshot, snapshotPart, rooted, `.${slot}.`]) {
    assert.deepEqual((await store.files(part, call())).files, shown, part);
  }
  assert.deepEqual((await store.files(rooted.replace("storage", "orage"), call())).files, []);
  const later = { ...newSnapshot, path: newSnapshot.path.replace("tabcde", "tabcdf") };
  for (const part of [snapshotPart, rooted]) {
    const again = await store.addSubvolume(later, part, call());
    assertQuiet(bench, again.refusal);
    assert.deepEqual([again.after.files, hasSubvolume(router, later.path)], [shown, false], part);
  }
  const gone = await store.removeImage(snapshot, snapshotPart, call());
  assertQuiet(bench, gone.refusal);
  assert.deepEqual([gone.after.files, filesHolding(router, `/${filePrefix}`)], [[], lasting]);
}

/**
 * A volume is made from a snapshot, whatever its source became, and another one from that volume, whose subvolume an
 * earlier call has made; each is removed on its own.
 */
async function restore(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addInner(bench);
  await addSnapshot(bench);
  await store.change(slot, record, { sizeBytes: 2n * gib }, call());
  const { makeFolder: _folder, ...volume } = newRestoredVolume();
  const { after, refusal } = await store.add(volume, call());
  assertQuiet(bench, refusal);
  assert.deepEqual(after.volumes, [truth(router, slot), truth(router, restored)]);
  assert.deepEqual([truth(router, restored)?.imagePath, truth(router, restored)?.sizeBytes], [
    clone.path,
    gib,
  ]);
  const parentName = snapshot.subvolume!.path.split("/").at(-1);
  assert.deepEqual(subvolumeIn(router, clone.subvolume.path), { readOnly: false, parentName });

  const third = innerPlace("pvc-3");
  const subvolume = { ...third.subvolume, parent: clone.subvolume, readOnly: false };
  await store.addSubvolume(subvolume, filePrefixOf("pvc-3"), call());
  const { subvolume: _made, ...adopting } = volume;
  await store.add({ ...adopting, id: "pvc-3", location: third }, call());
  assert.deepEqual([truth(router, "pvc-3")?.imagePath, truth(router, "pvc-3")?.sizeBytes], [third.path, gib]);
  await store.remove({ id: "pvc-3", comment: record }, third, filePrefixOf("pvc-3"), call());
  await store.remove({ id: restored, comment: record }, clone, filePrefixOf(restored), call());
  assert.deepEqual((await store.inventory(call())).volumes, [truth(router, slot)]);
  assert.equal((await store.files(snapshotPart, call())).files.length, 2);
  assert.deepEqual([...filesHolding(router, restored), ...filesHolding(router, "pvc-3")], []);
}

/** Where the router accepts no existing file, the subvolume stays, is recognized, and can be removed. */
async function restoreNothing(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addInner(bench);
  await addSnapshot(bench);
  const { makeFolder: _folder, ...volume } = newRestoredVolume();
  const { subvolume: _made, ...again } = volume;
  for (const tried of [volume, again]) {
    const { after, refusal } = await store.add(tried, call());
    assert.notEqual(refusal, undefined);
    assert.deepEqual([after.volumes, truth(router, restored)], [[truth(router, slot)], undefined]);
    const parentName = snapshot.subvolume!.path.split("/").at(-1);
    assert.deepEqual(subvolumeIn(router, clone.subvolume.path), { readOnly: false, parentName });
  }
  const { after } = await store.removeImage(clone, filePrefixOf(restored), call());
  assert.deepEqual([after.files, hasSubvolume(router, clone.subvolume.path)], [[], false]);
}

/**
 * A source, its snapshot and a volume made from the snapshot are removed in this order; returns which of them were
 * removed at once.
 */
async function leaveInOrder(bench: Bench): Promise<readonly boolean[]> {
  const { store, call, router } = bench;
  await addInner(bench);
  await addSnapshot(bench);
  await store.addSubvolume(newClone, filePrefixOf(restored), call());
  const { after, refusal } = await store.remove(source, innerPlace(slot), filePrefix, call());
  assert.deepEqual([after.volume, after.files], [undefined, filesHolding(router, filePrefix)]);
  const went = [!hasSubvolume(router, innerPlace(slot).subvolume.path)];
  if (!went[0]) assert.notEqual(refusal, undefined);
  for (const [location, part] of [[snapshot, snapshotPart], [clone, filePrefixOf(restored)]] as const) {
    const { after, refusal } = await store.removeImage(location, part, call());
    assert.deepEqual(after.files, filesHolding(router, part));
    went.push(after.files.length === 0);
    if (after.files.length > 0) assert.notEqual(refusal, undefined);
  }
  await store.removeImage(snapshot, snapshotPart, call());
  await store.removeImage(innerPlace(slot), filePrefix, call());
  assert.deepEqual(router.model.subvolumes.list().map(({ path }) => path).toSorted(), [
    "storage-pool",
    "storage-pool/metal-csi",
  ]);
  assertUntouched(bench);
  return went;
}

/**
 * The driver never asks for the removal of a subvolume whose image a disk uses, whatever the router does with files in
 * use.
 */
async function keepUsed(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  await addInner(bench);
  const shown = filesHolding(router, filePrefix);
  const kept = await store.removeImage(innerPlace(slot), filePrefix, call());
  assertQuiet(bench, kept.refusal);
  assert.deepEqual([kept.after.files, filesHolding(router, filePrefix)], [shown, shown]);
  router.model.disks.add({ ...router.model.disks.findBySlot(slot)!, slot: "theirs", comment: "" });
  await store.view(slot, filePrefix, call());
  const { after } = await store.remove(source, innerPlace(slot), filePrefix, call());
  assert.deepEqual([after.volume, after.sharers.map(({ id }) => id)], [undefined, ["theirs"]]);
  assert.deepEqual([after.files, filesHolding(router, filePrefix)], [shown, shown]);
}

/** A removed subvolume that the router still lists counts as removed, and its name is free. */
async function outliveEntry(bench: Bench): Promise<void> {
  const { store, call, router } = bench;
  router.model.delays.deadMs = 60_000;
  await addInner(bench);
  await addSnapshot(bench);
  await store.removeImage(snapshot, snapshotPart, call());
  assert.deepEqual((await store.files(snapshotPart, call())).files, []);
  await addSnapshot(bench);
  assert.equal(subvolumeIn(router, snapshot.subvolume!.path)?.readOnly, true);
}

/**
 * Two drivers make a snapshot of one name at the same time; returns how many exist, after checking that a driver sees
 * each of them.
 */
async function freezeTwice(bench: Bench): Promise<number> {
  const { store, call, router, another } = bench;
  await addInner(bench);
  const other = another();
  await other.createView(wanted(slot), call());
  const later = { ...newSnapshot, path: newSnapshot.path.replace("tabcde", "tabcdf") };
  const outcomes = await Promise.all([
    store.addSubvolume(newSnapshot, snapshotPart, call()),
    other.addSubvolume(later, snapshotPart, call()),
  ]);
  const there = [newSnapshot, later].filter(({ path }) => hasSubvolume(router, path));
  for (const { path } of there) {
    const seers = outcomes.filter(({ after }) => after.files.some((file) => file.path.endsWith(path)));
    assert.ok(seers.length > 0, "somebody knows of it");
  }
  return there.length;
}

/** Whether a router makes no disk on an existing file. */
export const refusesAdoption = ({ adopt }: RouterKind) => adopt === "refused";

export const subvolumeScenarios: readonly Scenario[] = [
  { name: "snapshot", run: on(freeze), otherwise: withoutSubvolumes },
  {
    name: "clone",
    run: on(restore),
    otherwise: [
      ...withoutSubvolumes,
      {
        when: refusesAdoption,
        because:
          "a router that takes over no file makes no disk of a copy; what is left of it can be removed",
        run: on(restoreNothing),
      },
    ],
  },
  {
    name: "sources first",
    run: on(async (bench) => assert.deepEqual(await leaveInOrder(bench), [true, true, true])),
    otherwise: [
      ...withoutSubvolumes,
      {
        when: ({ subvolumeParent }) => subvolumeParent === "held",
        because: "what has snapshots stays until they are gone, and the router says so",
        run: on(async (bench) => assert.deepEqual(await leaveInOrder(bench), [false, false, true])),
      },
    ],
  },
  { name: "used subvolume", run: on(keepUsed), otherwise: withoutSubvolumes },
  { name: "dead subvolume", run: on(outliveEntry), otherwise: withoutSubvolumes },
  {
    name: "two snapshots",
    run: on(async (bench) => assert.equal(await freezeTwice(bench), 1)),
    otherwise: [
      ...withoutSubvolumes,
      {
        when: ({ maxSessions }) => maxSessions === 1,
        because: "a second driver finds no session left: it is told so, and changes nothing",
        run: on(async (bench) => {
          await addInner(bench);
          await rejectsWith(
            bench.another().addSubvolume(newSnapshot, snapshotPart, bench.call()),
            "unavailable",
            /3 times/,
          );
          assert.equal(hasSubvolume(bench.router, newSnapshot.path), false);
          assert.ok(bench.router.violations.list().every(({ rule }) => rule === "session-limit"));
          bench.router.violations.clear();
        }),
      },
      {
        when: ({ interleave }) => interleave,
        because:
          "where sessions take turns both may find none and make one: whoever sees two takes its own back",
        run: on(async (bench) => assert.ok(await freezeTwice(bench) >= 1)),
      },
    ],
  },
];
