import { endings, endsAs } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { gibibyte, inTime, testContext } from "../../../tests/fakes/controller_deps.ts";
import {
  aDisk,
  aRecord,
  aSnapshotId,
  plainImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { sourceEpoch as epoch, withPlainSource } from "../../../tests/fakes/plain_source.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { StoredSnapshot } from "../../volume/model/snapshots/snapshots.ts";
import { getSnapshot, listSnapshots } from "./list.ts";
import { PromisedRoom } from "../volumes/promised_room.ts";
import { createSnapshot } from "./create.ts";

const context = testContext();
const id = aSnapshotId("s");

function controller(...options: Parameters<typeof withPlainSource>) {
  const test = withPlainSource(...options);
  const { store, deps, clock, soon } = test;
  const snapshot = (over = context, request = { name: "s", source: "pvc-1" }) =>
    createSnapshot(deps, request, over);
  /** Begins a copy that takes a minute, and is refused before it ends. */
  const begin = async () => {
    store.mishap("copyFile", { takesMs: 60_000 });
    await assert.rejects(inTime(clock, snapshot(soon())), refusal("unavailable", /still being copied/));
  };
  return { ...test, snapshot, begin };
}

function nameOf(snapshot: StoredSnapshot) {
  const { source, cluster, blank, sizeBytes, ready } = snapshot;
  return { id: snapshot.id, source, cluster, blank, sizeBytes, ready };
}

const whole = { id, source: "pvc-1", cluster: testCluster, blank: false, sizeBytes: gibibyte, ready: true };

Deno.test("createSnapshot() copies an image that is a plain file, and names it when it is whole", async () => {
  const { store, deps, snapshot, paths, clock } = controller();
  const made = await snapshot();
  assert.deepEqual(nameOf(made), whole);
  assert.equal(made.createdAtSeconds, Math.floor(clock.now() / 1000));
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), [
    "createView",
    "view",
    "copyFile",
    "view",
    "renameFile",
    "createView",
  ]);
  assert.deepEqual(paths(), [made.imagePath]);
  assert.match(
    made.imagePath,
    new RegExp(`^${testBase}/${id}\\.pvc-1\\.[0-9a-z]+\\.n\\.${testCluster}\\.img$`),
  );
  assert.equal(store.tree.contents.get(made.imagePath), "data");
  assert.deepEqual(await snapshot(), made);
  assert.deepEqual(await getSnapshot(deps, id, context), made);
  assert.deepEqual(store.calls.map((call) => call.method), ["createView", "files"]);
});

Deno.test("createSnapshot() tells of no snapshot while the copy goes on, and a later call gets the result", async () => {
  const { store, deps, clock, begin, snapshot, soon, paths } = controller();
  const createdAtSeconds = Math.floor(clock.now() / 1000);
  await begin();
  await clock.advance(10_000);
  await assert.rejects(inTime(clock, snapshot(soon())), refusal("unavailable", /still being copied/));
  assert.deepEqual(await listSnapshots(deps, { id: "", source: "" }, context), []);
  const made = await inTime(clock, snapshot());
  assert.deepEqual(nameOf(made), whole);
  assert.equal(made.createdAtSeconds, createdAtSeconds, "no write came after that");
  assert.deepEqual(paths(), [made.imagePath]);
  assert.equal(store.calls.filter((call) => call.method === "copyFile").length, 1);
  assert.deepEqual(await listSnapshots(deps, { id: "", source: "" }, context), [made]);
});

Deno.test("createSnapshot() takes no room for the calls that wait for its copy", async () => {
  const { store, deps, clock, soon } = controller();
  const promised = new PromisedRoom(clock, deps.settings, () => true);
  store.mishap("copyFile", { takesMs: 60_000 });
  const wait = async () => {
    const made = createSnapshot({ ...deps, promised }, { name: "s", source: "pvc-1" }, soon());
    await assert.rejects(inTime(clock, made), refusal("unavailable", /still being copied/));
  };
  const ampleGibibytes = async () => {
    const { pools } = await promised.learnFrom(() => store.createView(undefined, context));
    let count = 0;
    while (promised.isAmple(pools[0]!, BigInt(count + 1) * gibibyte)) count++;
    return count;
  };
  await wait();
  const before = await ampleGibibytes();
  await wait();
  await wait();
  assert.deepEqual([before > 0, await ampleGibibytes()], [true, before]);
});

Deno.test("createSnapshot() gives two calls at once the same snapshot", async () => {
  const { store, snapshot, paths } = controller();
  const [one, two] = await Promise.all([snapshot(), snapshot()]);
  assert.deepEqual(one, two);
  assert.deepEqual(paths(), [one.imagePath]);
  assert.equal(store.calls.filter((call) => call.method === "copyFile").length, 1);
});

Deno.test("createSnapshot() does not count the room of its own copy twice", async () => {
  const { store, clock, begin, snapshot } = controller({}, { epoch }, { sizeBytes: 40n * gibibyte });
  const seconds = Math.floor(clock.now() / 1000).toString(36);
  await begin();
  const part = `${testBase}/${id}.pvc-1.${seconds}.n.${testCluster}.img.0123abcd.part`;
  store.putFile(part, 40n * gibibyte);
  await clock.advance(5_000);
  const later = inTime(clock, snapshot());
  store.allFiles.delete(part);
  assert.equal((await later).ready, true);
});

Deno.test("createSnapshot() refuses another volume's snapshot of the same name while it is copied", async () => {
  const { store, deps, clock, begin, snapshot, paths } = controller();
  store.put(aDisk(aRecord(), { id: "pvc-2", imagePath: plainImage("pvc-2") }));
  await begin();
  const other = snapshot(context, { name: "s", source: "pvc-2" });
  await assert.rejects(other, refusal("exists-incompatible", /source=v:pvc-1 .*requested source=v:pvc-2/));
  await assert.rejects(
    snapshot(context, { name: "s", source: "pvc-3" }),
    refusal("not-found", /volume=pvc-3/),
  );
  assert.notEqual(deps.copies.find(id), undefined);
  const made = await inTime(clock, snapshot());
  assert.equal(made.source, "pvc-1");
  assert.deepEqual(paths().filter((path) => path.includes("/snap-")), [made.imagePath]);
});

Deno.test("createSnapshot() converges however the renaming ended", async () => {
  for (const ending of endings) {
    const [name, mishap] = ending;
    const { store, snapshot, paths } = controller();
    store.mishap("renameFile", mishap);
    // A copy that kept its first name may have been outdated.
    await endsAs(ending, snapshot(), name === "did not run" ? "busy" : "unavailable");
    const made = await snapshot();
    assert.deepEqual(paths(), [made.imagePath], name);
  }
});

Deno.test("createSnapshot() marks a copy of a volume that was never published as blank", async () => {
  const { snapshot } = controller({}, { epoch: { counter: 0, nonce: "0123abcd" } });
  const made = await snapshot();
  assert.equal(made.blank, true);
  assert.match(made.imagePath, /\.b\./);
});
