import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import {
  aPublish,
  gibibyte,
  inTime,
  testContext,
  testController,
  testParameters,
  withoutSubvolumes,
} from "../../../tests/fakes/controller_world.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  aSnapshotId,
  plainImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { cutCopies, type Mishap } from "../../../tests/fakes/volume_store.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import type { StoredSnapshot } from "../../volume/model/snapshots.ts";
import { ImageCopies } from "../volumes/copies.ts";
import { deleteSnapshot } from "./delete.ts";
import { deleteVolume } from "../volumes/delete.ts";
import { getSnapshot, listSnapshots } from "./list.ts";
import { publishVolume } from "../attachments/publish.ts";
import { createSnapshot } from "./create.ts";
import { unpublishVolume } from "../attachments/unpublish.ts";
import type { ControllerSettings, ControllerWorld } from "../deps.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };
const image = plainImage("pvc-1");
const id = aSnapshotId("s");

/** A controller on a router without subvolumes that has the volume `pvc-1`. */
function controller(
  settings: Partial<ControllerSettings> = {},
  record: Partial<VolumeRecord> = { epoch },
  disk: Partial<StoredVolume> = {},
) {
  const { store, world, clock, notes } = testController({ copyReturns: "when-done", ...settings });
  withoutSubvolumes(store);
  store.putFile(testBase, 0n, true);
  store.put(aDisk(aRecord(record), { imagePath: image, ...disk }));
  store.tree.contents.set(image, "data");
  const snapshot = (over = context, request = { name: "s", source: "pvc-1" }) =>
    createSnapshot(world, request, over);
  /** Begins a copy that takes a minute, and gives the answer that comes before. */
  const begin = async () => {
    store.mishap("copyFile", { takesMs: 60_000 });
    return await inTime(clock, snapshot(soon()));
  };
  const soon = (ms = 5_000) => testContext({ deadlineMs: clock.now() + ms });
  const publish = () => publishVolume(world, "pvc-1", aPublish("a"), testParameters, context);
  const unpublish = () => unpublishVolume(world, "pvc-1", "a", context);
  const paths = () => [...store.allFiles.keys()].filter((path) => path !== testBase && path !== image);
  return { store, world, clock, notes, snapshot, begin, soon, publish, unpublish, paths };
}

/** The same router, served by another process. */
function restarted(world: ControllerWorld): ControllerWorld {
  return { ...world, copies: new ImageCopies(world.clock) };
}

function nameOf(snapshot: StoredSnapshot) {
  const { source, cluster, blank, sizeBytes, ready } = snapshot;
  return { id: snapshot.id, source, cluster, blank, sizeBytes, ready };
}

const whole = { id, source: "pvc-1", cluster: testCluster, blank: false, sizeBytes: gibibyte, ready: true };

Deno.test("createSnapshot() copies an image that is a plain file, and names it when it is whole", async () => {
  const { store, world, snapshot, paths, clock } = controller();
  const made = await snapshot();
  assert.deepEqual(nameOf(made), whole);
  assert.equal(made.createdAtSeconds, Math.floor(clock.now() / 1000));
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), [
    "createView",
    "copyFile",
    "files",
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
  assert.deepEqual(await getSnapshot(world, id, context), made);
  assert.deepEqual(store.calls.map((call) => call.method), ["createView", "files"]);
});

Deno.test("createSnapshot() believes in no copy that is shorter than its source, whatever the router said of it", async () => {
  const { store, snapshot, paths } = controller();
  store.mishap("files", { before: () => cutCopies(store) });
  await assert.rejects(snapshot(), refusal("unavailable", /called a copy whole that is not/));
  assert.deepEqual(paths(), []);
  assert.equal((await snapshot()).ready, true);
});

Deno.test("createSnapshot() does not copy where that is not certain to give a whole file", async () => {
  const cases = [
    [undefined, /not known: run rds-csi doctor --probe/],
    ["at-once", /answers before the copy is whole/],
  ] as const;
  for (const [copyReturns, text] of cases) {
    const { store, snapshot } = controller({ copyReturns });
    await refusedUnchanged(store, () => snapshot(), refusal("precondition", text));
    assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
  }
});

Deno.test("createSnapshot() does not copy an image that somebody may be writing to", async () => {
  const cases: [Partial<VolumeRecord>, Partial<StoredVolume>][] = [
    [{ epoch, holders: [aHolder("a")] }, {}],
    [{ epoch, holders: [aHolder("a")] }, { exported: false }],
    [{ epoch }, { exported: true }],
  ];
  for (const [record, disk] of cases) {
    const { store, snapshot } = controller({}, record, disk);
    await refusedUnchanged(
      store,
      () => snapshot(),
      refusal("precondition", /that is published.*stop what uses it first/),
    );
  }
});

Deno.test("createSnapshot() waits out the grace of the last withdrawal before it copies", async () => {
  const { store, clock, snapshot, publish, unpublish } = controller();
  store.lingerMs = 10_000;
  await publish();
  await unpublish();
  const startMs = clock.now();
  let copiedMs = 0;
  store.mishap("copyFile", { before: () => copiedMs = clock.now() });
  await inTime(clock, snapshot());
  assert.ok(copiedMs >= startMs + 10_000);
});

Deno.test("createSnapshot() answers not ready while the copy goes on, and a later call gets the result", async () => {
  const { store, world, clock, begin, snapshot, soon, paths } = controller();
  const first = await begin();
  assert.deepEqual(nameOf(first), { ...whole, ready: false });
  await clock.advance(10_000);
  const second = await inTime(clock, snapshot(soon()));
  assert.deepEqual(second, first);
  const made = await inTime(clock, snapshot());
  assert.deepEqual(made, { ...first, ready: true });
  assert.deepEqual(paths(), [made.imagePath]);
  assert.equal(store.calls.filter((call) => call.method === "copyFile").length, 1);
  assert.deepEqual(await listSnapshots(world, { id: "", source: "" }, context), [made]);
});

Deno.test("createSnapshot() goes on copying when the caller goes away", async () => {
  const { store, clock, snapshot, paths } = controller();
  const gone = new AbortController();
  store.mishap("copyFile", { takesMs: 60_000 });
  const call = assert.rejects(snapshot(testContext({ signal: gone.signal })), /gone/);
  await clock.advance(1_000);
  gone.abort(new Error("gone"));
  await call;
  const made = await inTime(clock, snapshot());
  assert.deepEqual(paths(), [made.imagePath]);
  assert.equal(store.calls.filter((call) => call.method === "copyFile").length, 1);
});

Deno.test("createSnapshot() gives two calls at once the same snapshot", async () => {
  const { store, snapshot, paths } = controller();
  const [one, two] = await Promise.all([snapshot(), snapshot()]);
  assert.deepEqual(one, two);
  assert.deepEqual(paths(), [one.imagePath]);
  assert.equal(store.calls.filter((call) => call.method === "copyFile").length, 1);
});

Deno.test("listSnapshots() shows a copy that goes on as not ready", async () => {
  const { store, world, begin } = controller();
  const { imagePath } = await begin();
  store.putFile(`${imagePath}.0123abcd.part`, 5n);
  const [shown] = await listSnapshots(world, { id, source: "" }, context);
  assert.deepEqual([shown?.ready, shown?.sizeBytes], [false, 5n]);
});

Deno.test("createSnapshot() does not count the room of its own copy twice", async () => {
  const { store, clock, begin, snapshot } = controller({}, { epoch }, { sizeBytes: 40n * gibibyte });
  const { imagePath } = await begin();
  store.putFile(`${imagePath}.0123abcd.part`, 40n * gibibyte);
  await clock.advance(5_000);
  const later = inTime(clock, snapshot());
  store.allFiles.delete(`${imagePath}.0123abcd.part`);
  assert.equal((await later).ready, true);
});

Deno.test("createSnapshot() does not miss the room that its own copy takes", async () => {
  const { store, clock, begin, snapshot } = controller({}, { epoch }, { sizeBytes: 20n * gibibyte });
  const free = (freeBytes: bigint) => store.pools = store.pools.map((pool) => ({ ...pool, freeBytes }));
  free(30n * gibibyte);
  await begin();
  await clock.advance(60_000);
  free(10n * gibibyte);
  assert.equal((await inTime(clock, snapshot())).ready, true);
});

Deno.test("createSnapshot() starts over where another process began, and leaves nothing of that", async () => {
  const { store, world, clock, begin, paths } = controller({}, { epoch }, { sizeBytes: 40n * gibibyte });
  const { imagePath } = await begin();
  world.copies.cancel(id);
  store.putFile(`${imagePath}.0123abcd.part`, 40n * gibibyte);
  await clock.advance(60_000);
  const second = restarted(world);
  const made = await inTime(clock, createSnapshot(second, { name: "s", source: "pvc-1" }, context));
  assert.notEqual(made.imagePath, imagePath);
  assert.deepEqual(paths(), [made.imagePath]);
});

Deno.test("createSnapshot() removes no unfinished copy but its own", async () => {
  const { store, snapshot, paths } = controller();
  const others = [
    `${testBase}/${aSnapshotId("t")}.pvc-1.1.n.${testCluster}.img.0123abcd.part`,
    `${testBase}/${id}.pvc-1.1.n.ffffffff.img.0123abcd.part`,
    `/pool/other/${id}.pvc-1.1.n.${testCluster}.img.0123abcd.part`,
  ];
  for (const path of others) store.putFile(path);
  const made = await snapshot();
  assert.deepEqual(paths(), [...others, made.imagePath]);
});

Deno.test("createSnapshot() is not hindered by a copy that somebody has made elsewhere", async () => {
  const { store, snapshot } = controller();
  store.putFile(`/pool/backup/${id}.pvc-1.1.n.${testCluster}.img`, gibibyte);
  assert.ok((await snapshot()).imagePath.startsWith(`${testBase}/snap-`));
});

Deno.test("createSnapshot() discards a copy during which the volume was used", async () => {
  const { clock, begin, snapshot, publish, unpublish, paths } = controller();
  await begin();
  await publish();
  await unpublish();
  await assert.rejects(
    inTime(clock, snapshot()),
    refusal("busy", /its volume was changed while it was copied: .*volume=pvc-1/),
  );
  assert.deepEqual(paths(), []);
  const made = await inTime(clock, snapshot());
  assert.deepEqual(paths(), [made.imagePath]);
});

Deno.test("createSnapshot() discards a copy whose volume was deleted meanwhile", async () => {
  const { world, clock, begin, snapshot, paths } = controller({ unexportGraceMs: 0 });
  await begin();
  await deleteVolume(world, "pvc-1", context);
  await assert.rejects(inTime(clock, snapshot()), refusal("not-found", /volume=pvc-1/));
  assert.deepEqual([paths(), world.copies.find(id)], [[], undefined]);
});

Deno.test("createSnapshot() ends the copy when it is refused for good, and leaves nothing of it", async () => {
  const { store, world, clock, begin, snapshot, publish, unpublish, paths } = controller();
  const { imagePath } = await begin();
  store.putFile(`${imagePath}.0123abcd.part`, 5n);
  await publish();
  await assert.rejects(inTime(clock, snapshot()), refusal("precondition", /published/));
  assert.deepEqual([paths(), world.copies.find(id)], [[], undefined]);
  await unpublish();
  assert.equal((await inTime(clock, snapshot())).ready, true);
});

Deno.test("createSnapshot() refuses another volume's snapshot of the same name while it is copied", async () => {
  const { store, world, clock, begin, snapshot, paths } = controller();
  store.put(aDisk(aRecord(), { id: "pvc-2", imagePath: plainImage("pvc-2") }));
  await begin();
  const other = snapshot(context, { name: "s", source: "pvc-2" });
  await assert.rejects(other, refusal("exists-incompatible", /source=v:pvc-1 .*requested source=v:pvc-2/));
  await assert.rejects(
    snapshot(context, { name: "s", source: "pvc-3" }),
    refusal("not-found", /volume=pvc-3/),
  );
  assert.notEqual(world.copies.find(id), undefined);
  const made = await inTime(clock, snapshot());
  assert.equal(made.source, "pvc-1");
  assert.deepEqual(paths().filter((path) => path.includes("/snap-")), [made.imagePath]);
});

Deno.test("createSnapshot() leaves nothing of a copy that failed, and the next try succeeds", async () => {
  const cases: [string, Mishap, RegExp][] = [
    ["refused", { refusal: "failure: no space left" }, /answered "failure: no space left"/],
    ["did not run", { runs: false }, /not copied to the end/],
    ["cut off in the middle", { runs: "half" }, /not copied to the end/],
    ["cut off and refused", { runs: "half", refusal: "interrupted" }, /answered "interrupted"/],
    ["end unknown", { unreadable: true }, /not copied to the end/],
    ["half, end unknown", { runs: "half", unreadable: true }, /not copied to the end/],
  ];
  for (const [name, mishap, text] of cases) {
    const { store, snapshot, paths } = controller();
    store.mishap("copyFile", mishap);
    await assert.rejects(snapshot(), refusal("unavailable", text), name);
    assert.deepEqual(paths(), [], name);
    const made = await snapshot();
    assert.deepEqual(paths(), [made.imagePath], name);
    assert.deepEqual(store.violations, []);
  }
});

Deno.test("createSnapshot() says so when it cannot remove what is left of a copy, and the next try does", async () => {
  const { store, snapshot, paths, notes } = controller();
  store.mishap("copyFile", { runs: "half" });
  store.mishap("removeImage", { runs: false, unreadable: true });
  await assert.rejects(snapshot(), refusal("unavailable", /not copied to the end/));
  assert.equal(paths().length, 1);
  assert.deepEqual(notes, ["an unfinished copy could not be removed"]);
  const made = await snapshot();
  assert.deepEqual(paths(), [made.imagePath]);
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

Deno.test("createSnapshot() finds no room before it copies, or takes its copy back when others took it", async () => {
  const large = { sizeBytes: 51n * gibibyte };
  const { store, snapshot, paths } = controller({}, { epoch }, large);
  await assert.rejects(snapshot(), refusal("exhausted"));
  assert.deepEqual([paths(), store.takeCount()], [[], 1]);

  const late = controller({}, { epoch }, { sizeBytes: 40n * gibibyte });
  const other = aDisk(aRecord(), { id: "other", sizeBytes: 30n * gibibyte, imagePath: "/pool/x.img" });
  late.store.mishap("copyFile", { before: () => late.store.put(other) });
  await assert.rejects(late.snapshot(), refusal("exhausted", /others took the room/));
  assert.deepEqual(late.paths(), ["/pool/x.img"]);
});

Deno.test("deleteSnapshot() ends the copy that goes on for it, and leaves nothing", async () => {
  const { store, world, begin, paths } = controller();
  const { imagePath } = await begin();
  store.putFile(`${imagePath}.0123abcd.part`, 5n);
  await deleteSnapshot(world, id, context);
  assert.deepEqual([paths(), world.copies.find(id)], [[], undefined]);
});

Deno.test("createSnapshot() marks a copy of a volume that was never published as blank", async () => {
  const { snapshot } = controller({}, { epoch: { counter: 0, nonce: "0123abcd" } });
  const made = await snapshot();
  assert.equal(made.blank, true);
  assert.match(made.imagePath, /\.b\./);
});
