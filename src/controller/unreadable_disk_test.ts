// A router may print the row of one disk in a form that the driver cannot read. That volume is then unknown, and in use;
// all others are as before.
import assert from "node:assert/strict";
import { aClusterVolume, FakeClusterView } from "../../tests/fakes/cluster_view.ts";
import {
  aCreate,
  aPublish,
  gibibyte,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../tests/fakes/controller_deps.ts";
import { aSnapshotId, testBase } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { volumeIdFor } from "../volume/model/ids/ids.ts";
import type { StoredVolume } from "../volume/model/inventory.ts";
import { formatPlate, platesFolder } from "../volume/model/name_plates.ts";
import { orphanGraceMs } from "../volume/rules/audit/finding.ts";
import { auditRouter, deleteOrphan } from "./audit/audit.ts";
import { unpublishVolume } from "./attachments/unpublish.ts";
import { publishVolume } from "./attachments/publish.ts";
import { readInventory } from "./inventory.ts";
import { NamePlateWriter } from "./names/name_plates.ts";
import { createSnapshot } from "./snapshots/create.ts";
import { deleteSnapshot } from "./snapshots/delete.ts";
import { listSnapshots } from "./snapshots/list.ts";
import { createVolume } from "./volumes/create.ts";
import { deleteVolume } from "./volumes/delete.ts";
import { expandVolume } from "./volumes/expand.ts";
import { getCapacity, getVolume, listVolumes } from "./volumes/read.ts";

const context = testContext();
const [odd, plain] = [volumeIdFor("odd"), volumeIdFor("plain")];
const unknownSize = { sizeBytes: 0n, sizeUnknown: true } as const;

/** A controller with two volumes; the router prints the row of the first in a form that cannot be read. */
async function withUnreadable(row: Partial<StoredVolume> = {}) {
  const made = testController({}, 1, new FakeClusterView());
  for (const name of ["odd", "plain"]) await createVolume(made.deps, aCreate(name), context);
  made.store.edit(odd, { unreadable: "the key size is missing", ...row });
  return made;
}

const unreadable = refusal("unavailable", /row of its disk cannot be read: .*the key size is missing/);

Deno.test("every call about a disk that cannot be read is UNAVAILABLE and changes nothing", async () => {
  const { deps, store } = await withUnreadable();
  const before = store.snapshot();
  const range = { requiredBytes: 5n * gibibyte, limitBytes: 0n };
  for (
    const call of [
      () => createVolume(deps, aCreate("odd"), context),
      () => createVolume(deps, aCreate("clone", { source: { kind: "volume", id: odd } }), context),
      () => createSnapshot(deps, { name: "s", source: odd }, context),
      () => expandVolume(deps, odd, range, context),
      () => publishVolume(deps, odd, aPublish("node-1"), testParameters, context),
      () => unpublishVolume(deps, odd, "node-1", context),
      () => deleteVolume(deps, odd, context),
      () => getVolume(deps, odd, context),
    ]
  ) await assert.rejects(call(), unreadable, String(call));
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("no call about another volume minds a disk that cannot be read", async () => {
  const { deps, store, notes } = await withUnreadable();
  assert.deepEqual((await listVolumes(deps, context)).map(({ stored }) => stored.id), [plain]);
  assert.deepEqual(notes, ["the list omits a disk because it cannot be read"]);
  await createVolume(deps, aCreate("more"), context);
  await publishVolume(deps, plain, aPublish("node-1"), testParameters, context);
  await unpublishVolume(deps, plain, "node-1", context);
  await deleteVolume(deps, volumeIdFor("more"), context);
  assert.deepEqual([...store.disks.keys()], [odd, plain]);
});

Deno.test("a disk that cannot be read counts with its printed size", async () => {
  const { deps } = await withUnreadable({ sizeBytes: 70n * gibibyte });
  assert.equal((await getCapacity(deps, testBase, context)).availableBytes, 29n * gibibyte);
  const big = aCreate("big", { range: { requiredBytes: 30n * gibibyte, limitBytes: 0n } });
  await assert.rejects(createVolume(deps, big, context), refusal("exhausted"));
});

Deno.test("nothing is promised on a pool with a disk of unknown size, and the message names it", async () => {
  const { deps, store } = await withUnreadable(unknownSize);
  const form = new RegExp(`does not say how large a disk on it is: .*disk=${odd}`);
  await assert.rejects(createVolume(deps, aCreate("more"), context), refusal("unavailable", form));
  await assert.rejects(
    createSnapshot(deps, { name: "s", source: plain }, context),
    refusal("unavailable", form),
  );
  await assert.rejects(getCapacity(deps, testBase, context), refusal("unavailable", form));
  assert.deepEqual([...store.disks.keys()], [odd, plain]);
});

/** A controller with two pools and a volume on each; the router's row of the first pool cannot be read. */
async function withUnreadablePool() {
  const made = testController({ basePaths: [testBase, otherBase] }, 1, new FakeClusterView());
  const { deps, store } = made;
  const [pool] = store.pools;
  const other = { ...pool!, mountPoint: "other", subvolumeLabel: "other-fs" };
  store.pools = [pool!, other];
  await createVolume(deps, aCreate("odd"), context);
  await createVolume(deps, onOther("plain"), context);
  store.pools = [other];
  store.unreadablePools = [{ mountPoint: pool!.mountPoint, reason: "the key free has an unexpected value" }];
  return made;
}

const otherBase = "/other/csi";
const onOther = (name: string) => aCreate(name, { parameters: { ...testParameters, basePath: otherBase } });
const unreadablePool = refusal(
  "unavailable",
  /the router's row of it cannot be read: pool=pool: the key free has an unexpected value; see \/disk print/,
);

Deno.test("a pool whose row cannot be read is UNAVAILABLE, says why, and nothing on it counts as gone", async () => {
  const { deps, store } = await withUnreadablePool();
  const before = store.snapshot();
  const gone = volumeIdFor("gone");
  for (
    const call of [
      () => createVolume(deps, aCreate("more"), context),
      () => getCapacity(deps, testBase, context),
      () => createSnapshot(deps, { name: "s", source: odd }, context),
      () => deleteVolume(deps, odd, context),
      // It may be on the pool.
      () => deleteVolume(deps, gone, context),
      () => getVolume(deps, gone, context),
      () => unpublishVolume(deps, gone, "node-1", context),
      () => listSnapshots(deps, { id: "", source: plain }, context),
    ]
  ) await assert.rejects(call(), unreadablePool, String(call));
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("no list and no call on another pool minds a pool whose row cannot be read", async () => {
  const { deps, store } = await withUnreadablePool();
  await createVolume(deps, onOther("more"), context);
  await publishVolume(deps, plain, aPublish("node-1"), testParameters, context);
  await unpublishVolume(deps, plain, "node-1", context);
  await deleteVolume(deps, volumeIdFor("more"), context);
  assert.deepEqual([...store.disks.keys()], [odd, plain]);
  assert.deepEqual(
    (await listVolumes(deps, context)).map(({ stored }) => stored.id),
    [odd, plain].toSorted(),
  );
  assert.deepEqual(await listSnapshots(deps, { id: "", source: "" }, context), []);
  assert.ok((await getCapacity(deps, otherBase, context)).availableBytes > 0n);
});

Deno.test("a list minds a pool that is not mounted, also where another mount point cannot be read", async () => {
  const { deps, store } = await withUnreadablePool();
  store.unreadablePools = [{ mountPoint: "", reason: "the key mount-point has an unexpected value" }];
  const away = refusal("unavailable", /pool=pool/);
  await assert.rejects(listVolumes(deps, context), away);
  await assert.rejects(listSnapshots(deps, { id: "", source: "" }, context), away);
});

Deno.test("an audit and a reconcile round conclude nothing from a disk that cannot be read", async () => {
  const { deps, clock } = await withUnreadable();
  const { findings } = await inTime(clock, auditRouter(deps, { vouched: false }, context));
  const its = findings.filter(({ id }) => id === odd);
  assert.deepEqual(its.map(({ kind, kept }) => [kind, kept]), [["disk-unreadable", "it counts as in use"]]);
  const { volumes } = await readInventory(deps, context);
  assert.deepEqual(volumes.map(({ stored }) => stored.id), [plain]);
});

Deno.test("unpublishVolume() takes no volume for detached while a disk that cannot be read may be its own", async () => {
  const { deps, store } = await withUnreadable();
  store.disks.delete(plain);
  store.allFiles.clear();
  store.edit(odd, { exported: true, exportNqn: "", imagePath: "/pool/any.img" });
  await assert.rejects(unpublishVolume(deps, plain, "node-1", context), unreadable);
});

Deno.test("deleteSnapshot() minds no other pool whose row cannot be read, but for what may be on it", async () => {
  const { deps, store } = await withUnreadablePool();
  const cluster = deps.settings.cluster;
  const snapshot = await createSnapshot(deps, { name: "s", source: plain }, context);
  await deleteSnapshot(deps, snapshot.id, context);
  assert.ok(![...store.allFiles.keys()].some((path) => path.includes(snapshot.id)));
  const before = store.snapshot();
  await assert.rejects(deleteSnapshot(deps, snapshot.id, context), unreadablePool);
  // The whole one may be on the other pool.
  const part = `${otherBase}/${snapshot.id}.${plain}.1.n.${cluster}.img.0123abcd.part`;
  for (const path of [part, `${testBase}/${snapshot.id}.${plain}.1.n.${cluster}.img`]) {
    store.putImage(path, gibibyte);
    await assert.rejects(deleteSnapshot(deps, snapshot.id, context), unreadablePool, path);
    assert.ok(store.allFiles.has(path), path);
    store.allFiles.delete(path);
  }
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("an audit judges nothing on a pool whose row cannot be read, says so, and goes on with the others", async () => {
  const { deps, store, clock } = await withUnreadablePool();
  const cluster = deps.clusterView as FakeClusterView;
  const [lost, hidden, moved] = ["lost", "hidden", "moved"].map(volumeIdFor) as [string, string, string];
  cluster.used = [
    { ...aClusterVolume(lost), attributes: { volumePath: otherBase } },
    { ...aClusterVolume(hidden), attributes: { volumePath: testBase } },
    aClusterVolume(moved),
  ];
  const { cluster: mark } = deps.settings;
  const leftOver = `${otherBase}/pvc-1.${mark}.img`;
  for (const path of [leftOver, `${testBase}/pvc-2.${mark}.img`]) store.putImage(path, gibibyte);
  await clock.advance(orphanGraceMs);
  const { findings, view } = await inTime(clock, auditRouter(deps, { vouched: false }, context));
  assert.deepEqual(
    findings.map(({ kind, id, path }) => [kind, path === "" ? id : path]).toSorted(),
    [
      ["disk-unreadable", testBase],
      ["disk-without-pv", store.disks.get(odd)!.imagePath],
      ["disk-without-pv", store.disks.get(plain)!.imagePath],
      ["image-without-disk", leftOver],
      ["pv-without-disk", lost],
    ].toSorted(),
  );
  const keptOf = (wanted: string) => findings.find(({ id, path }) => id === wanted || path === wanted)?.kept;
  assert.match(keptOf(odd)!, /the row of its pool cannot be read/);
  assert.match(keptOf(testBase)!, /nothing on it counts as gone/);
  for (const wanted of [leftOver, plain]) {
    const finding = findings.find(({ id, path }) => id === wanted || path === wanted)!;
    await deleteOrphan(deps, finding, view, context);
  }
  assert.deepEqual([store.allFiles.has(leftOver), ...store.disks.keys()], [false, odd]);
});

Deno.test("name plates on other pools go on, and stay where what they name may be on a pool that cannot be read", async () => {
  const { deps, store, notes } = await withUnreadablePool();
  const cluster = deps.clusterView as FakeClusterView;
  for (const path of ["/pool", testBase, "/other", otherBase]) store.putFile(path, 0n, true);
  const plate = (id: string, base = otherBase) =>
    `${base}/${platesFolder(deps.settings.cluster)}/${
      formatPlate({ id, namespace: "default", name: "claim", className: "" })
    }`;
  const snapshot = aSnapshotId("s");
  const [gone, hidden] = ["gone", "hidden"].map(volumeIdFor) as [string, string];
  const stay = [plate(snapshot), plate(hidden, testBase)];
  for (const path of [plate(gone), ...stay]) store.putFile(path, 0n, true);
  cluster.named = [{ id: plain, namespace: "default", name: "claim", className: "" }];
  const writer = new NamePlateWriter(deps, cluster, true);
  const { inventory } = await readInventory(deps, context);
  await writer.write(inventory, context.signal);
  assert.deepEqual([plate(gone), plate(plain), ...stay].map((path) => store.allFiles.has(path)), [
    false,
    true,
    true,
    true,
  ]);
  assert.deepEqual(notes, ["cannot keep the name plates on the router; retrying"]);
});

Deno.test("name plates that nobody wants are not taken for gone while a pool cannot be read", async () => {
  const { deps, store } = await withUnreadablePool();
  for (const path of ["/other", otherBase]) store.putFile(path, 0n, true);
  const writer = new NamePlateWriter(deps, new FakeClusterView(), false);
  const { inventory } = await readInventory(deps, context);
  await writer.write(inventory, context.signal);
  store.takeCount();
  writer.begin(inventory, context.signal);
  await writer.ended();
  assert.equal(store.takeCount(), 1);
});
