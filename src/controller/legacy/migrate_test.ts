import assert from "node:assert/strict";
import { aClusterVolume, anAttachment, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { inTime, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aHolder, testBase, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { Holder } from "../../volume/model/record.ts";
import { releaseVolume } from "../attachments/release.ts";
import { adoptVolume } from "./adopt.ts";
import { distrust } from "../records/memory.ts";
import { migrateAll } from "./migrate_all.ts";

const id = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const nqn = `${testPrefix}:${id}`;
const left: StoredVolume = {
  id,
  imagePath: `${testBase}/${id}.img`,
  sizeBytes: 1n << 30n,
  exported: true,
  exportNqn: nqn,
  exportPort: 4420,
  comment: "",
};

/** A disk as the legacy driver has left it, and whoever is attached to it, with the counter of what it was answered. */
function scene(...attached: readonly (readonly [node: string, epochCounter: number])[]) {
  const cluster = new FakeClusterView();
  cluster.used = [aClusterVolume(id)];
  cluster.attached = attached.map(([node, epochCounter]) => anAttachment(id, node, { epochCounter }));
  const test = testController({}, 1, cluster);
  test.store.put(left);
  return { ...test, ...volumeCalls(test, id), cluster };
}

const older = { kind: "older-epoch", volumeId: id, recorded: 0, known: 3, withdrawn: true } as const;

Deno.test("a router that was restored to before the takeover gives nobody the name that a node was shut out from", async () => {
  const { publish, record, disk, events, store } = scene(["node-2", 3]);
  const { nqn: answered } = await publish("node-2");
  assert.notEqual(answered, nqn);
  assert.equal(disk().exportNqn, answered);
  assert.equal(record().epoch?.counter, 4);
  assert.deepEqual(events, [older]);
  assert.deepEqual(store.violations, []);
});

Deno.test("a router that has forgotten only what came after the takeover gives it to nobody either", async () => {
  const { deps, cluster, publish, disk, events } = scene();
  assert.equal((await migrateAll(deps, testContext())).taken, 1);
  cluster.attached = [anAttachment(id, "node-2", { epochCounter: 3 })];
  const { nqn: answered } = await publish("node-2");
  assert.notEqual(answered, nqn);
  assert.equal(disk().exportNqn, answered);
  assert.deepEqual(events, [older]);
});

Deno.test("migrateAll() turns off what a restored router exports again under the earlier name", async () => {
  const { deps, record, disk, events } = scene(["node-2", 3]);
  assert.equal((await migrateAll(deps, testContext())).taken, 1);
  assert.deepEqual([disk().exported, record().holders, record().epoch?.counter], [false, [], 3]);
  assert.deepEqual(events, [older]);
});

Deno.test("a take-over that ends before it turns the export off leaves a record that is older than the cluster", async () => {
  const { deps, record, disk, store } = scene(["node-2", 3]);
  store.mishap("change", {});
  store.mishap("change", { runs: false, unreadable: true });
  assert.deepEqual(await migrateAll(deps, testContext()), { taken: 0, mayTakeMore: true });
  assert.deepEqual([disk().exported, record().holders, record().epoch?.counter], [true, [], 0]);
});

Deno.test("whoever has it by the legacy driver's name goes on, whatever this driver has answered since", async () => {
  const { publish, disk, events } = scene(["node-1", 0]);
  assert.equal((await publish("node-1"))["nqn"], nqn);
  assert.equal(disk().exported, true);
  assert.deepEqual(events, []);
});

Deno.test("a volume that is taken over right after a boot could have another disk on its image that is not back yet", async () => {
  const { deps, store, clock, publish, unpublish, disk } = scene();
  store.put({ ...left, id: "snap-of-it", exportNqn: `${testPrefix}:snap-of-it` });
  store.reboot();
  store.hidden.add("snap-of-it");
  await assert.rejects(publish("node-1"), refusal("unavailable", /booted only/));
  await assert.rejects(unpublish("node-1"), refusal("unavailable"));
  assert.deepEqual(disk(), left);
  store.hidden.clear();
  await clock.advance(deps.settings.settleMs);
  await assert.rejects(publish("node-1"), refusal("precondition", /disk=snap-of-it/));
  assert.deepEqual(disk(), left);
});

Deno.test("deleting a volume of the legacy driver leaves a folder of its name, which is somebody's", async () => {
  const { store, remove } = scene();
  const copy = `${testBase}/${id}/disk.img`;
  store.putImage(copy, 1n << 30n);
  for (let time = 1; time <= 2; time++) {
    await remove();
    assert.equal(store.disks.has(id), false);
    assert.deepEqual([store.allFiles.has(left.imagePath), store.allFiles.has(copy)], [false, true]);
  }
});

Deno.test("where the cluster makes no attachments nobody's volume is taken over", async () => {
  const { deps, cluster, publish, disk } = scene();
  cluster.attachRequired = false;
  await assert.rejects(publish("node-1"), refusal("precondition", /does not say which nodes have it/));
  await assert.rejects(migrateAll(deps, testContext()), refusal("precondition"));
  assert.deepEqual(disk(), left);
});

Deno.test("adoptVolume() refuses a node for a volume that is not exported, and takes it over without one", async () => {
  const { deps, store, record } = scene();
  store.put({ ...left, exported: false });
  const claim = { kind: { access: "mount", filesystem: "ext4" }, mode: "single-node-writer" } as const;
  const adopt = (holders: readonly Holder[]) =>
    adoptVolume(deps, id, { ...claim, holders, forgotten: 0 }, testContext());
  await assert.rejects(adopt([aHolder("node-2")]), refusal("precondition", /is not exported/));
  assert.equal(store.disks.get(id)!.comment, "");
  assert.deepEqual([await adopt([]), await adopt([])], [true, false]);
  assert.deepEqual(record().holders, []);
});

Deno.test("a volume is given back to the legacy driver as it has left it, and to no other state", async () => {
  const { deps, store, disk } = scene();
  await migrateAll(deps, testContext());
  const migrated = disk();
  store.put({ ...migrated, exported: true, exportNqn: `${nqn}:9-0a0b0c0d` });
  const release = () => releaseVolume(deps, id, testContext());
  await assert.rejects(release(), refusal("precondition", /exported though no node has it/));
  store.put({ ...migrated, exported: true, exportNqn: nqn, exportPort: 4421 });
  store.calls.length = 0;
  assert.deepEqual(await release(), { already: false, nqn, nodes: [] });
  assert.deepEqual([disk().comment, disk().exported, disk().exportPort], ["", true, 4421]);
});

Deno.test("releaseVolume() exports under the port that the router has, or the driver's where it has none", async () => {
  for (const [exportPort, port] of [[4421, 4421], [0, 4420]] as const) {
    const { deps, store, disk, clock } = scene();
    await migrateAll(deps, testContext());
    store.put({ ...disk(), exported: false, exportPort });
    await inTime(clock, releaseVolume(deps, id, testContext()));
    assert.deepEqual([disk().exported, disk().exportNqn, disk().exportPort], [true, nqn, port]);
  }
});

/** A take-over that was cut off before it turned the export off, and a controller that leads after the one that began it. */
async function cutOff() {
  const test = scene(["node-2", 3]);
  const { deps, store } = test;
  store.mishap("change", {});
  store.mishap("change", { runs: false, unreadable: true });
  await migrateAll(deps, testContext());
  distrust(deps);
  store.calls.length = 0;
  return test;
}

Deno.test("the record that a take-over has left is not written again", async () => {
  const { store, unpublish, disk } = await cutOff();
  await unpublish("node-1");
  assert.equal(disk().exported, false);
  assert.deepEqual(store.calls.map(({ method }) => method), ["view", "change", "view"]);
});

Deno.test("what an earlier leader has sent may still undo how a take-over is finished", async () => {
  const { store, clock, unpublish, disk } = await cutOff();
  const exported = disk();
  const after = () => void (disk().exported || clock.timer(1_000, () => store.put(exported)));
  for (let time = 1; time <= 2; time++) store.mishap("change", { after });
  await assert.rejects(unpublish("node-1"), refusal("busy"));
});
