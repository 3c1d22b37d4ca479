// What every VolumeStore does: the one over SSH to a simulated router, and the one in memory with which the controller
// is tested. A property of only one of them would prove nothing about the other.
import assert from "node:assert/strict";
import { plainLocation, subvolumeLocation } from "../../src/volume/model/layout.ts";
import type { NewVolume, VolumeStore } from "../../src/volume/ports/store.ts";
import { type StoreBench as Bench, storeBenches as benches } from "./_store_benches.ts";

const gib = 1n << 30n;
const filePrefix = "pvc-1.0a0b0c0d";
const snapshotPart = `/snap-${"0".repeat(28)}.`;
const snapshotName = `${snapshotPart}pvc-1.tabcde.n.0a0b0c0d`;
const one = { id: "pvc-1", comment: "one" };

/** A volume in a plain file. */
function plain({ folder }: Bench, id = "pvc-1"): NewVolume {
  const location = plainLocation(`${folder}/${id}.0a0b0c0d.img`);
  return { id, location, sizeBytes: gib, comment: "one" };
}

/** A volume in a subvolume. */
function inner({ folder, label }: Bench, id = "pvc-1") {
  const location = subvolumeLocation(`${folder}/${id}.0a0b0c0d`, label);
  const subvolume = { ...location.subvolume!, readOnly: false };
  return { id, location, subvolume, sizeBytes: gib, comment: "one", makeFolder: { path: folder, label } };
}

/** Looks first, as every change requires, and adds a volume. */
async function add({ store, call, folder }: Bench, volume: NewVolume): Promise<void> {
  await store.createView({ id: volume.id, filePrefix, folder }, call());
  const { after } = await store.add(volume, call());
  assert.ok(after.volumes.some(({ id }) => id === volume.id));
}

async function addPlain(bench: Bench): Promise<void> {
  await add(bench, { ...plain(bench), makeFolder: { path: bench.folder, label: undefined } });
}

/** A volume in a subvolume, and a snapshot of it. */
async function addSnapshot(bench: Bench) {
  const volume = inner(bench);
  await add(bench, volume);
  const location = subvolumeLocation(`${bench.folder}${snapshotName}`, bench.label);
  const frozen = { ...location.subvolume!, parent: volume.location.subvolume!, readOnly: true };
  const { after } = await bench.store.addSubvolume(frozen, snapshotPart, bench.call());
  assert.deepEqual(after.files.map(({ path, sizeBytes }) => [path, sizeBytes]), [
    [`${bench.folder}${snapshotName}`, 0n],
    [location.path, gib],
  ]);
  return { volume, location, frozen };
}

const contract: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  "adds, changes and removes, and shows each as it is": async (bench) => {
    const { store, call, has } = bench;
    await addPlain(bench);
    const shown = { id: "pvc-1", imagePath: plain(bench).location.path, sizeBytes: gib, comment: "one" };
    const off = { exported: false, exportNqn: "", exportPort: 0 };
    const added = (await store.inventory(call())).volumes;
    assert.deepEqual(added.map(({ exportPort: _, ...volume }) => volume), [
      { ...shown, exported: false, exportNqn: "" },
    ]);
    const change = { comment: "two", sizeBytes: 2n * gib, export: { nqn: "nqn.a:1", port: 4420 } };
    const { after } = await store.change("pvc-1", "one", change, call());
    const on = { ...shown, ...off, comment: "two", sizeBytes: 2n * gib, exported: true };
    assert.deepEqual(after.volume, { ...on, exportNqn: "nqn.a:1", exportPort: 4420 });
    assert.deepEqual((await store.view("pvc-1", filePrefix, call())).volume, after.volume);
    await store.change("pvc-1", "two", { export: false }, call());
    const two = { id: "pvc-1", comment: "two" };
    const removed = await store.remove(two, plain(bench).location, filePrefix, call());
    assert.deepEqual([removed.after.volume, removed.after.files, removed.refusal], [
      undefined,
      [],
      undefined,
    ]);
    assert.equal(has(plain(bench).location.path), false);
  },
  "changes a disk only while it is on the image that is named": async (bench) => {
    const { store, call } = bench;
    await addPlain(bench);
    const { path } = plain(bench).location;
    for (const onImage of [`${path}.other`, `${bench.folder}/other/${path.split("/").at(-1)}`]) {
      const outcome = await store.withdrawUnseen({ ...one, imagePath: onImage }, { comment: "two" }, call());
      assert.deepEqual([outcome?.after.volume?.comment, outcome?.ended], ["one", true], onImage);
    }
    const outcome = await store.withdrawUnseen({ ...one, imagePath: path }, { comment: "two" }, call());
    assert.equal(outcome?.after.volume?.comment, "two");
  },
  "adds a volume and shows it alone, and the pools without any": async (bench) => {
    const { store, call, folder } = bench;
    await addPlain(bench);
    const second = plain(bench, "pvc-2");
    const view = await store.view("pvc-2", "pvc-2.0a0b0c0d", call(), folder);
    assert.deepEqual([view.volume, view.files.map(({ path }) => path)], [undefined, [folder]]);
    const { after } = await store.addAlone(second, call());
    assert.deepEqual([after.volume?.id, after.volume?.imagePath], ["pvc-2", second.location.path]);
    const taken = await store.addAlone({ ...second, comment: "two" }, call());
    assert.deepEqual(taken.after.volume, after.volume);
    const { pools, upMs } = await store.state(call());
    assert.deepEqual(pools, view.pools);
    assert.ok(upMs >= view.upMs);
  },
  "adds what nobody looked for, only where nothing of it is there": async (bench) => {
    const { store, call, folder } = bench;
    const unseen = (settleMs = 0) => ({ filePrefix, settleMs });
    await store.view("pvc-1", filePrefix, call(), folder);
    const early = await store.addUnseen(plain(bench), unseen(Infinity), call());
    assert.equal(early, undefined, "the router is not known to be up for so long");
    const volume = async () => (await store.addUnseen(plain(bench), unseen(), call()))?.after.volume;
    assert.equal(await volume(), undefined, "it has no folder");
    const shown = await store.view("pvc-1", filePrefix, call(), folder);
    assert.deepEqual([shown.volume, shown.files], [undefined, []]);
    await add(bench, { ...plain(bench, "pvc-0"), makeFolder: { path: folder, label: undefined } });
    assert.deepEqual([(await volume())?.comment, (await volume())?.id], ["one", "pvc-1"]);
    const other = { ...plain(bench), comment: "two" };
    const taken = await store.addUnseen(other, unseen(), call());
    assert.deepEqual([taken?.after.volume?.comment, taken?.refusal], ["one", undefined]);
    const slot = { ...other, id: "pvc-2" };
    const shared = await store.addUnseen(slot, unseen(), call());
    assert.deepEqual([shared?.after.volume, shared?.refusal], [undefined, undefined], "its image is used");
  },
  "exports what nobody looked at, only where it is as it is remembered and its image is its own": async (
    bench,
  ) => {
    const { store, call, folder } = bench;
    const made = { ...plain(bench), makeFolder: { path: folder, label: undefined } };
    await add(bench, made);
    const known = { ...one, imagePath: made.location.path };
    const change = {
      export: { nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-00ff00ff", port: 4420 },
      comment: "two",
    };
    const volume = async (disk = known, prefix = filePrefix) => {
      const outcome = await store.exportUnseen(disk, { ...change, neverMounted: true }, prefix, call());
      assert.equal(outcome?.refusal, undefined);
      const { comment, exported, exportNqn } = outcome!.after.volume!;
      return [comment, exported, exportNqn];
    };
    const untouched = ["one", false, ""];
    assert.deepEqual(await volume({ ...known, comment: "on" }), untouched, "another comment");
    const elsewhere = known.imagePath.replace(/^\/[^/]+/, "/other");
    assert.deepEqual(await volume({ ...known, imagePath: elsewhere }), untouched, "no such pool");
    const gone = plain(bench, "pvc-2").location.path;
    assert.deepEqual(await volume({ ...known, imagePath: gone }), untouched, "its image is not there");
    assert.deepEqual(await volume(known, "pvc-2.0a0b0c0d"), untouched, "another image");
    const on = ["two", true, change.export.nqn];
    assert.deepEqual(await volume(), on);
    assert.deepEqual(await volume({ ...known, comment: "two" }), on);
    const other = {
      ...change,
      export: { ...change.export, nqn: "nqn.2000-02.com.mikrotik:pvc-1:2-00ff00ff" },
    };
    const twice = await store.exportUnseen({ ...known, comment: "two" }, other, filePrefix, call());
    assert.equal(twice?.after.volume?.exportNqn, change.export.nqn, "it is exported already");
  },
  "grows what nobody looked at, only where it is all as it is remembered": async (bench) => {
    const { store, call, folder, has } = bench;
    const made = { ...plain(bench), makeFolder: { path: folder, label: undefined } };
    await add(bench, made);
    const known = { ...one, imagePath: made.location.path, sizeBytes: gib, exported: false };
    const grow = async (disk = known, sizeBytes = 2n * gib) => {
      const outcome = await store.growUnseen(disk, { comment: "two", sizeBytes }, call());
      assert.equal(outcome?.refusal, undefined);
      const { volume } = outcome!.after;
      return [volume?.comment, volume?.sizeBytes, volume?.exported];
    };
    const untouched = ["one", gib, false];
    assert.deepEqual(await grow({ ...known, comment: "on" }), untouched, "another comment");
    assert.deepEqual(await grow({ ...known, sizeBytes: gib - 1n }), untouched, "another size");
    assert.deepEqual(await grow({ ...known, exported: true }), untouched, "its export is off");
    const other = { ...known, imagePath: plain(bench, "pvc-2").location.path };
    assert.deepEqual(await grow(other), untouched, "its image is not there");
    const second = { ...plain(bench, "pvc-2"), comment: "other" };
    await store.addAlone(second, call());
    assert.ok(has(other.imagePath));
    assert.deepEqual(await grow(other), untouched, "another image");
    assert.deepEqual(await grow(), ["two", 2n * gib, false]);
    assert.deepEqual(await grow(known, 3n * gib), ["two", 2n * gib, false], "it has another comment now");
    const nqn = "nqn.2000-02.com.mikrotik:pvc-1:1-00ff00ff";
    await store.change("pvc-1", "two", { comment: "one", export: { nqn, port: 4420 } }, call());
    assert.deepEqual(
      await grow({ ...known, sizeBytes: 2n * gib }),
      ["one", 2n * gib, true],
      "its export is on",
    );
  },
  "removes what nobody looked at, only where it is as it is remembered and its image is its own": async (
    bench,
  ) => {
    const { store, call, folder, label, has } = bench;
    const unseen = { filePrefix, settleMs: 0 };
    const inSubvolume = inner(bench);
    for (const volume of [{ ...plain(bench), makeFolder: { path: folder, label } }, inSubvolume]) {
      const { path } = volume.location;
      await add(bench, volume);
      const remove = async (guard = one, where = path, which = unseen) => {
        const outcome = await store.removeUnseen(guard, where, which, call());
        const { after } = outcome ?? {};
        return [after?.volume?.comment, after?.foreign, after?.files.some((file) => file.path === path)];
      };
      const untouched = ["one", undefined, true];
      assert.deepEqual(await remove({ ...one, comment: "on" }), untouched, "another comment");
      assert.deepEqual(await remove(one, "/elsewhere/pvc-1.0a0b0c0d.img"), untouched, "no such pool");
      const other = { ...unseen, filePrefix: "pvc-1.ffffffff" };
      assert.deepEqual((await remove(one, path, other)).slice(0, 2), ["one", undefined], "another image");
      const young = { ...unseen, settleMs: Infinity };
      assert.equal(await store.removeUnseen(one, path, young, call()), undefined, "up for too short");
      const nqn = "nqn.2000-02.com.mikrotik:pvc-1:1-00ff00ff";
      await store.change("pvc-1", "one", { export: { nqn, port: 4420 } }, call());
      assert.deepEqual(await remove(), untouched, "its export is on");
      await store.change("pvc-1", "one", { export: false }, call());
      const done = await store.removeUnseen(one, path, unseen, call());
      const { volume: left, foreign, sharers, files, pools } = done!.after;
      assert.deepEqual([left, foreign, sharers, files, done!.refusal], [
        undefined,
        undefined,
        [],
        [],
        undefined,
      ]);
      assert.ok(pools.length > 0);
      assert.equal(has(path), false);
    }
  },
  "shows a volume with what it is made from, and neither other disks nor other snapshots": async (bench) => {
    const { store, call, folder } = bench;
    const { volume, location, frozen } = await addSnapshot(bench);
    await add(bench, inner(bench, "pvc-2"));
    const other = { ...frozen, path: frozen.path.replace("snap-0", "snap-1") };
    const made = await store.addSubvolume(other, snapshotPart.replace("snap-0", "snap-1"), call());
    assert.equal(made.after.files.length, 2);
    const wanted = { id: "pvc-3", filePrefix: "pvc-3.0a0b0c0d", folder };
    const fromVolume = await store.sourceView(wanted, { id: "pvc-1" }, call());
    assert.deepEqual([fromVolume.volume, fromVolume.source?.id, fromVolume.sharers], [
      undefined,
      "pvc-1",
      [],
    ]);
    assert.deepEqual(fromVolume.files.map(({ path }) => path), [folder]);
    const fromSnapshot = await store.sourceView(wanted, { part: snapshotPart }, call());
    assert.deepEqual([fromSnapshot.volume, fromSnapshot.source], [undefined, undefined]);
    assert.deepEqual(fromSnapshot.files.map(({ path }) => path).toSorted(), [
      folder,
      `${folder}${snapshotName}`,
      location.path,
    ]);
    const { files, volume: own } = await store.sourceView(
      { id: "pvc-1", filePrefix, folder: "" },
      { part: snapshotPart },
      call(),
    );
    assert.deepEqual([own?.imagePath, files.length], [volume.location.path, 4]);
  },
  "changes and removes nothing whose comment is another, and no image in use": async (bench) => {
    const { store, call } = bench;
    await addPlain(bench);
    const { location } = plain(bench);
    const before = await store.view("pvc-1", filePrefix, call());
    const changed = await store.change("pvc-1", "zero", { comment: "two" }, call());
    assert.deepEqual(changed.after.volume, before.volume);
    const removed = await store.remove({ id: "pvc-1", comment: "zero" }, location, filePrefix, call());
    assert.deepEqual([removed.after.volume, removed.after.files], [before.volume, before.files]);
    assert.deepEqual((await store.removeImage(location, filePrefix, call())).after.files, before.files);
  },
  "adds nothing to a slot or an image that is taken, nor where there is nothing": async (bench) => {
    const { store, call, has } = bench;
    await addPlain(bench);
    const { volumes } = await store.inventory(call());
    const other = plain(bench, "pvc-2");
    for (
      const volume of [
        { ...plain(bench), location: other.location },
        { ...other, location: plain(bench).location },
        { ...other, location: plain(bench).location, sizeBytes: undefined },
        { ...other, sizeBytes: undefined },
      ]
    ) assert.deepEqual((await store.add(volume, call())).after.volumes, volumes);
    assert.equal(has(other.location.path), false);
  },
  "refuses what has no folder, and makes no subvolume without its parent": async (bench) => {
    const { store, call, folder, label } = bench;
    await store.createView({ id: "pvc-1", filePrefix, folder }, call());
    const { after, refusal } = await store.add(plain(bench), call());
    assert.deepEqual([after.volumes, refusal === undefined], [[], false]);
    const { location, frozen } = await addSnapshot(bench);
    const second = { ...frozen, path: frozen.path.replace("tabcde", "tabcdf") };
    const again = await store.addSubvolume(second, snapshotPart, call());
    assert.deepEqual([again.after.files.length, again.refusal], [2, undefined], "one is there");
    const parent = { label, path: `${location.subvolume!.path}-none` };
    const orphan = { ...frozen, path: frozen.path.replace("snap-0", "snap-1"), parent };
    const made = await store.addSubvolume(orphan, snapshotPart.replace("snap-0", "snap-1"), call());
    assert.deepEqual(made.after.files, []);
  },
  "shows files by a part of their path, and to a create its file-name prefix, its folder and all snapshots":
    async (
      bench,
    ) => {
      const { store, call, folder } = bench;
      const { volume, location } = await addSnapshot(bench);
      const paths = async (files: ReturnType<VolumeStore["files"]>) =>
        (await files).files.map(({ path }) => path);
      const snapshot = [`${folder}${snapshotName}`, location.path];
      assert.deepEqual(await paths(store.files(snapshotPart, call())), snapshot);
      const own = [folder, `${folder}/${filePrefix}`, volume.location.path];
      const wanted = { id: "pvc-1", filePrefix, folder };
      assert.deepEqual(
        (await paths(store.createView(wanted, call()))).toSorted(),
        [...own, ...snapshot].toSorted(),
      );
      assert.deepEqual(await paths(store.createView(undefined, call())), snapshot);
    },
  "makes a volume of a snapshot, and removes each with its image, which no disk uses": async (bench) => {
    const { store, call, subvolume } = bench;
    const { volume, location } = await addSnapshot(bench);
    const clone = inner(bench, "pvc-2");
    await add(bench, {
      ...clone,
      subvolume: { ...clone.subvolume, parent: location.subvolume! },
      sizeBytes: undefined,
    });
    const parentName = `${snapshotName.slice(1)}`;
    assert.deepEqual(subvolume(clone.location.subvolume!.path), {
      readOnly: false,
      parentName,
    });
    assert.deepEqual(subvolume(location.subvolume!.path), {
      readOnly: true,
      parentName: filePrefix,
    });
    assert.equal(
      (await store.removeImage(volume.location, filePrefix, call())).after.files.length,
      2,
      "it is used",
    );
    assert.deepEqual((await store.remove(one, volume.location, filePrefix, call())).after.files, []);
    assert.deepEqual((await store.removeImage(location, snapshotPart, call())).after.files, []);
    assert.equal(subvolume(location.subvolume!.path), undefined);
    const { volumes } = await store.inventory(call());
    assert.deepEqual(volumes.map(({ id, sizeBytes }) => [id, sizeBytes]), [["pvc-2", gib]]);
  },
  "copies to a free path, and renames what a disk is as it was for": async (bench) => {
    const { store, call, has } = bench;
    await addPlain(bench);
    const { path } = plain(bench).location;
    const copied = plain(bench, "pvc-2");
    const part = `${copied.location.path}.00ff00ff.part`;
    assert.deepEqual(await store.copyFile(path, part, call()), { done: true });
    assert.equal((await store.copyFile(path, part, call())).done, false, "it is not free");
    const stale = { id: "pvc-1", comment: "zero" };
    await store.renameFile(part, copied.location.path, stale, "/pvc-2.", call());
    assert.deepEqual([has(part), has(copied.location.path)], [true, false]);
    await add(bench, { ...copied, sizeBytes: undefined, copied: { path: part } });
    assert.deepEqual([has(part), has(copied.location.path)], [false, true]);
    await store.copyFile(path, part, call());
    await store.renameFile(part, path, one, "/pvc-1.", call());
    assert.equal(has(part), true, "the other path is taken");
  },
  "makes folders of any plate's name, and removes empty ones only": async (bench) => {
    const { store, call, has, folder } = bench;
    await addPlain(bench);
    const plates = `${folder}/names-of-0a0b0c0d`;
    const names = ["a+b_data__pvc-1", "a_pvc+-1_c_pvc-1~", `${"n".repeat(63)}_${"c".repeat(80)}_c_pvc-1`];
    const paths = names.map((name) => `${plates}/${name}`);
    assert.equal(await store.changeFolders({ add: [plates, ...paths], remove: [] }, call()), undefined);
    assert.equal(await store.changeFolders({ add: [plates, ...paths], remove: [] }, call()), undefined);
    const shown = async () => (await store.files("names-of-0a0b0c0d", call())).files;
    assert.deepEqual(
      (await shown()).toSorted((a, b) => a.path < b.path ? -1 : 1),
      [plates, ...paths.toSorted()].map((path) => ({ path, sizeBytes: 0n, directory: true })),
    );
    // The first one has others in it, a file is no folder, and what is gone is gone.
    const image = plain(bench).location.path;
    const remove = [plates, image, paths[0]!, paths[1]!, `${plates}/gone`];
    assert.equal(await store.changeFolders({ add: [], remove }, call()), undefined);
    assert.deepEqual((await shown()).map(({ path }) => path), [plates, paths[2]!]);
    assert.ok(has(image));
    assert.equal(await store.changeFolders({ add: [], remove: [paths[2]!, plates] }, call()), undefined);
    assert.deepEqual(await shown(), []);
    const nowhere = `${folder}/not/there`;
    assert.match(await store.changeFolders({ add: [nowhere], remove: [] }, call()) ?? "", /./);
    assert.equal(has(nowhere), false);
    // What is refused keeps nothing beside it from being made, and removed.
    const [one, two] = [`${folder}/before`, `${folder}/x-behind`];
    assert.match(await store.changeFolders({ add: [one, nowhere, two], remove: [] }, call()) ?? "", /./);
    assert.deepEqual([has(one), has(nowhere), has(two)], [true, false, true]);
    assert.match(await store.changeFolders({ add: [nowhere], remove: [one, two] }, call()) ?? "", /./);
    assert.deepEqual([has(one), has(two)], [false, false]);
    // Without its pool a path is one on the router's own storage.
    const own = "/not-mounted";
    assert.equal(await store.changeFolders({ add: [own], remove: [] }, call()), undefined);
    assert.deepEqual((await store.filesAt([own], call())).files, []);
  },
};

for (const [where, open] of Object.entries(benches)) {
  for (const [what, test] of Object.entries(contract)) {
    Deno.test(`a store ${where} ${what}`, () => open(test));
  }
}
