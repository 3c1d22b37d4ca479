import assert from "node:assert/strict";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord, aSnapshotId, testBase, testCluster } from "../../../tests/fakes/records.ts";
import { VolumeError } from "../../volume/errors.ts";
import { formatPlate, type ObjectName, platesFolder } from "../../volume/model/name_plates.ts";
import { readInventory } from "../inventory.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { NamePlateWriter, readNames, readPlates } from "./name_plates.ts";

const plates = `${testBase}/${platesFolder(testCluster)}`;
const nameOf = (id: string, name: string): ObjectName => ({ id, namespace: "default", name, className: "" });
const pathOf = (id: string, name: string) => `${plates}/${formatPlate(nameOf(id, name))}`;

/** A router with volumes, and a writer that is called for each tenth round. */
function scene(ids: readonly string[] = ["pvc-1"], isWanted = true) {
  const controller = testController();
  const { store, deps } = controller;
  store.putFile("/pool", 0n, true);
  store.putFile(testBase, 0n, true);
  for (const id of ids) {
    store.put(aDisk(aRecord(), { id, imagePath: `${testBase}/${id}.${testCluster}.img` }));
  }
  const cluster = new FakeClusterView();
  cluster.named = ids.map((id) => nameOf(id, `claim-of-${id}`));
  const writer = new NamePlateWriter(deps, cluster, isWanted);
  return {
    ...controller,
    cluster,
    shown: () =>
      [...store.allFiles.keys()].filter((path) => path.startsWith(`${plates}/`)).map((path) =>
        path.slice(plates.length + 1)
      ).toSorted(),
    isThere: (path: string) => store.allFiles.has(path),
    async write() {
      const { inventory } = await readInventory(deps, testContext());
      store.takeCount();
      await writer.write(inventory, testContext().signal);
      return store.takeCount();
    },
  };
}

Deno.test("every volume gets its plate, and where nothing is missing one command is sent", async () => {
  const { write, shown, notes, deps } = scene(["pvc-1", "pvc-2"]);
  assert.equal(await write(), 2);
  const expected = ["pvc-1", "pvc-2"].map((id) => formatPlate(nameOf(id, `claim-of-${id}`)));
  assert.deepEqual(shown(), expected);
  assert.equal(await write(), 1);
  assert.deepEqual([shown(), notes], [expected, []]);
  const read = await readPlates(deps, testContext());
  assert.deepEqual(read.map(({ id, name }) => [id, name]), [["pvc-1", "claim-of-pvc-1"], [
    "pvc-2",
    "claim-of-pvc-2",
  ]]);
});

Deno.test("a command that is lost, or that the router refuses, changes nothing else and is told once", async () => {
  for (
    const mishap of [{ refusal: "failure: no" }, { runs: "half" }, { late: true, unreadable: true }] as const
  ) {
    const { write, shown, notes, store } = scene(["pvc-1", "pvc-2"]);
    for (let turn = 0; turn < 3; turn++) {
      store.mishap("changeFolders", mishap);
      await write();
    }
    assert.equal(notes.length, 1, JSON.stringify(mishap));
    assert.match(notes[0]!, /cannot keep the name plates/);
    store.clearMishaps();
    await write();
    store.runLate();
    await write();
    assert.equal(shown().length, 2);
    assert.deepEqual(store.violations, []);
  }
});

Deno.test("without the API server, or without its base folder, no plate is made, and the round goes on", async () => {
  const { write, shown, notes, cluster, store } = scene();
  cluster.readable = false;
  await write();
  cluster.readable = true;
  store.allFiles.delete(testBase);
  await write();
  assert.deepEqual(shown(), []);
  assert.equal(notes.length, 2);
});

Deno.test("a plate goes when no disk, image or snapshot of its id is left, and the folder after the last one", async () => {
  const { write, shown, cluster, store, isThere } = scene();
  const snapshot = aSnapshotId("a");
  cluster.named = [...cluster.named, nameOf(snapshot, "before-upgrade")];
  await write();
  assert.equal(shown().length, 2);
  cluster.named = [];
  const [image] = [...store.allFiles.keys()].filter((path) => path.endsWith(".img"));
  const copy = `${testBase}/${snapshot}.pvc-1.abc.n.${testCluster}.img`;
  store.putFile(copy, 1n);
  // The reclaim policy Retain keeps it.
  await write();
  assert.equal(shown().length, 2);
  store.disks.delete("pvc-1");
  await write();
  assert.equal(shown().length, 2);
  store.allFiles.delete(image!);
  // A snapshot of it is left.
  await write();
  assert.equal(shown().length, 2);
  store.allFiles.delete(copy);
  await write();
  assert.deepEqual(shown(), []);
  await write();
  assert.equal(isThere(plates), false);
  assert.equal(isThere(testBase), true);
});

Deno.test("no plate goes while the router may still bring its disks back, or a pool is away", async () => {
  const { write, shown, cluster, store, clock } = scene();
  await write();
  cluster.named = [];
  store.hidden.add("pvc-1");
  store.allFiles.delete(`${testBase}/pvc-1.${testCluster}.img`);
  store.reboot();
  await write();
  assert.equal(shown().length, 1);
  await clock.advance(121_000);
  const { pools } = store;
  store.pools = [];
  await write();
  store.pools = pools;
  assert.equal(shown().length, 1);
  await write();
  assert.equal(shown().length, 0);
});

Deno.test("a person's folders and what is in them stay", async () => {
  const { write, shown, cluster, store } = scene();
  await write();
  const note = `${pathOf("pvc-1", "claim-of-pvc-1")}/note.txt`;
  store.putFile(note, 1n);
  store.putFile(`${plates}/my folder`, 0n, true);
  cluster.named = [];
  store.disks.clear();
  store.allFiles.delete(`${testBase}/pvc-1.${testCluster}.img`);
  await write();
  await write();
  assert.equal(shown().length, 3);
  assert.ok(store.allFiles.has(note));
});

Deno.test("names beyond 2,000 are told once", async () => {
  const ids = Array.from({ length: 2_001 }, (_, at) => `pvc-${at + 10_000}`);
  const { write, notes, store, cluster } = scene([]);
  cluster.named = ids.map((id) => nameOf(id, "a"));
  for (const id of ids.slice(0, 2_000)) store.putFile(pathOf(id, "a"), 0n, true);
  store.putFile(plates, 0n, true);
  const disk = aDisk(aRecord());
  for (const id of ids) store.disks.set(id, { ...disk, id });
  await write();
  await write();
  assert.deepEqual(notes, ["there are more volumes and snapshots than name plates on the router"]);
  assert.equal(store.allFiles.has(pathOf(ids[2_000]!, "a")), false);
});

Deno.test("no plate is made while its pool is not mounted, be that so only since the round", async () => {
  const { write, shown, notes, store } = scene();
  const { pools } = store;
  store.pools = [];
  assert.equal(await write(), 1);
  store.pools = pools;
  store.mishap("files", { before: () => store.pools = [] });
  assert.equal(await write(), 1);
  store.pools = pools;
  assert.deepEqual([shown(), notes], [[], []]);
  await write();
  assert.equal(shown().length, 1);
});

Deno.test("every command about plates goes aside, and for no longer than a minute", async () => {
  const { deps, store, clock } = scene();
  const contexts: CallContext[] = [];
  const watched = new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        contexts.push(args.find((arg): arg is CallContext => (arg as CallContext)?.signal !== undefined)!);
        return value.apply(target, args);
      };
    },
  });
  const cluster = new FakeClusterView();
  // A volume that is gone, beside one that is new: everything is looked at, made and removed.
  cluster.named = [nameOf("pvc-1", "new")];
  store.putFile(plates, 0n, true);
  store.putFile(pathOf("pvc-gone", "old"), 0n, true);
  const { inventory } = await readInventory(deps, testContext());
  await new NamePlateWriter({ ...deps, store: watched }, cluster, true).write(
    inventory,
    testContext().signal,
  );
  await readPlates({ ...deps, store: watched }, testContext());
  assert.equal(store.allFiles.has(pathOf("pvc-gone", "old")), false);
  assert.equal(contexts.length, 5);
  for (const { aside, deadlineMs } of contexts) {
    assert.equal(aside, true);
    assert.ok(deadlineMs! <= clock.now() + 60_000);
  }
});

Deno.test("readNames() answers without names when the router takes long, and not when the call ends", async () => {
  const { write, deps, store, clock } = scene();
  await write();
  assert.deepEqual([...await readNames(deps, testContext())], [["pvc-1", "default/claim-of-pvc-1"]]);
  store.mishap("files", { takesMs: 3_600_000 });
  const names = readNames(deps, testContext());
  await clock.advance(11_000);
  assert.deepEqual([...await names], []);
  store.mishap("files", { takesMs: 3_600_000 });
  const context = fakeCall(clock, 5_000);
  const late = assert.rejects(readNames(deps, context), { kind: "deadline" });
  await clock.advance(6_000);
  await late;
});

Deno.test("plates are made although nobody knows which ones nothing needs, and that is told", async () => {
  const { write, shown, store, cluster, notes } = scene(["pvc-1"]);
  await write();
  // It may be on a pool that is away.
  const files = store.files.bind(store);
  store.files = async (part, context) => {
    if (part.startsWith(".")) throw new VolumeError("unavailable", "Cannot read from the router");
    return await files(part, context);
  };
  store.putFile(pathOf("pvc-gone", "old"), 0n, true);
  store.put(aDisk(aRecord(), { id: "pvc-2", imagePath: `${testBase}/pvc-2.${testCluster}.img` }));
  cluster.named = ["pvc-1", "pvc-2"].map((id) => nameOf(id, `claim-of-${id}`));
  await write();
  assert.equal(shown().length, 3);
  assert.deepEqual(notes, ["cannot keep the name plates on the router; retrying"]);
});

Deno.test("names that the router refuses keep no other ones from being made", async () => {
  const ids = Array.from({ length: 50 }, (_, at) => `pvc-${at + 100}`);
  const { write, shown, store, cluster, notes } = scene(ids);
  cluster.named = ids.map((id, at) => nameOf(id, at < 45 ? `a.${at}` : `b-${at}`));
  const { changeFolders } = store;
  store.changeFolders = async ({ add, remove }, context) => {
    const taken = add.filter((path) => !path.includes("+"));
    const refusal = await changeFolders.call(store, { add: taken, remove }, context);
    return taken.length < add.length ? "failure: bad name" : refusal;
  };
  for (let turn = 0; turn < 4; turn++) await write();
  assert.equal(shown().length, 5);
  assert.deepEqual(notes, ["cannot keep the name plates on the router; retrying"]);
});

Deno.test("where no names are wanted any more they go, but those of volumes that the cluster does not know", async () => {
  const { write, shown, isThere, store, cluster } = scene(["pvc-1", "pvc-2", "pvc-3"], false);
  store.putFile(plates, 0n, true);
  for (const id of ["pvc-1", "pvc-2", "pvc-3"]) store.putFile(pathOf(id, "data"), 0n, true);
  store.putFile(pathOf("pvc-gone", "data"), 0n, true);
  // A cluster that takes the place of a lost one has no PersistentVolumes yet.
  const { named } = cluster;
  cluster.named = [nameOf("pvc-1", "data")];
  await write();
  assert.deepEqual(shown(), ["pvc-2", "pvc-3"].map((id) => formatPlate(nameOf(id, "data"))));
  cluster.named = named;
  await write();
  await write();
  assert.deepEqual([shown(), isThere(plates)], [[], false]);
});
