import assert from "node:assert/strict";
import { aClusterVolume, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import {
  aCreate,
  gibibyte,
  inTime,
  testContext,
  testController,
} from "../../../tests/fakes/controller_deps.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  plainImage,
  subvolumeImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import type { AuditFinding } from "../../volume/rules/audit/finding.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { Random } from "../../volume/ports/system.ts";
import { importedSource } from "../../volume/model/sources.ts";
import { formatComment, newComment } from "../../volume/model/record.ts";
import { auditRouter, deleteOrphan } from "./audit.ts";
import { AuditLoop } from "./audit_loop.ts";
import { createVolume } from "../volumes/create.ts";

const asked = { vouched: false };

function audited() {
  const cluster = new FakeClusterView();
  const test = testController({}, 1, cluster);
  const audit = async (context = testContext()) =>
    await inTime(test.clock, auditRouter(test.deps, asked, context));
  return { ...test, cluster, audit };
}

/** A volume that was used once and is not any more. */
async function used(test: ReturnType<typeof testController>, name: string): Promise<string> {
  const id = volumeIdFor(name);
  await inTime(test.clock, createVolume(test.deps, aCreate(name), testContext()));
  const { publish, unpublish } = volumeCalls(test, id);
  await publish();
  await unpublish();
  return id;
}

Deno.test("auditRouter() takes three commands when all is well, and reports what was so twice when not", async () => {
  const test = audited();
  const id = await used(test, "pvc-a");
  test.cluster.used = [aClusterVolume(id)];
  test.store.takeCount();
  assert.deepEqual((await test.audit()).findings, []);
  assert.equal(test.store.takeCount(), 3);
  test.store.putImage(plainImage("pvc-9"), gibibyte);
  const work = auditRouter(test.deps, asked, testContext());
  await test.clock.advance(1);
  // It was only about to get its disk.
  test.store.disks.set("pvc-9", aDisk(aRecord(), { id: "pvc-9", imagePath: plainImage("pvc-9") }));
  assert.deepEqual((await inTime(test.clock, work)).findings, []);
  assert.equal(test.store.takeCount(), 6);
});

Deno.test("auditRouter() finds an image of the legacy driver whose disk is gone, and nobody deletes it", async () => {
  const test = audited();
  const path = `${testBase}/pvc-7c9e6679-7425-40de-944b-e07fc1f90ae7.img`;
  test.store.putImage(path, gibibyte);
  const { remove } = await findOne(test, "earlier-image");
  await assert.rejects(remove(), refusal("precondition", /its owner is not known/));
  assert.equal(test.store.allFiles.has(path), true);
});

Deno.test("auditRouter() concludes nothing while the router settles or a pool is away", async () => {
  const test = audited();
  test.store.pools = [];
  await assert.rejects(test.audit(), refusal("unavailable", /not mounted/));
  const young = testController({ settleMs: Number.MAX_SAFE_INTEGER });
  await assert.rejects(
    auditRouter(young.deps, asked, testContext()),
    refusal("unavailable", /booted only/),
  );
});

Deno.test("auditRouter() goes on without the cluster where that cannot be asked, and says so", async () => {
  const test = audited();
  await used(test, "pvc-a");
  test.cluster.readable = false;
  test.store.putImage(plainImage("pvc-9"), gibibyte);
  const { cluster, findings } = await inTime(
    test.clock,
    auditRouter(test.deps, { vouched: true }, testContext()),
  );
  assert.deepEqual(cluster, { unreadable: "Cannot reach the API server" });
  assert.deepEqual(findings.map(({ kind }) => kind), ["image-without-disk"]);
  // Where there is a cluster nobody can vouch in its place.
  assert.match(findings[0]!.kept!, /no cluster was asked/);
});

async function findOne(test: ReturnType<typeof audited>, kind: string) {
  const context = testContext();
  const { findings, view } = await test.audit(context);
  const found = findings.filter((one) => one.kind === kind);
  assert.equal(found.length, 1, JSON.stringify(findings));
  const remove = (finding: AuditFinding = found[0]!) =>
    inTime(test.clock, deleteOrphan(test.deps, finding, view, context));
  return { finding: found[0]!, remove };
}

Deno.test("deleteOrphan() deletes a disk without a PersistentVolume with its image, and nothing else", async () => {
  const test = audited();
  const [id, other] = [await used(test, "pvc-a"), await used(test, "pvc-b")];
  test.cluster.used = [aClusterVolume(other)];
  await test.clock.advance(3_600_000);
  const { remove } = await findOne(test, "disk-without-pv");
  await remove();
  assert.equal(test.store.disks.has(id), false);
  assert.equal(test.store.allFiles.has(subvolumeImage(id)), false);
  assert.equal(test.store.disks.has(other), true);
  assert.equal(test.store.allFiles.has(subvolumeImage(other)), true);
  assert.deepEqual(test.store.violations, []);
});

Deno.test("deleteOrphan() deletes no disk that was used or changed since it was judged", async () => {
  const test = audited();
  const id = await used(test, "pvc-a");
  await test.clock.advance(3_600_000);
  const { remove } = await findOne(test, "disk-without-pv");
  const { publish, unpublish } = volumeCalls(test, id);
  await publish();
  await assert.rejects(remove(), refusal("busy", /changed at the same time/));
  await unpublish();
  await assert.rejects(remove(), refusal("busy", /changed at the same time/));
  assert.equal(test.store.disks.has(id), true);
});

Deno.test("deleteOrphan() deletes files of every form, one at a time", async () => {
  const test = audited();
  const paths = {
    "image-without-disk": plainImage("pvc-9"),
    "unfinished-copy": `${plainImage("pvc-8")}.0011aabb.part`,
    "leftover-subvolume": `${testBase}/pvc-7.${testCluster}`,
  };
  for (const [kind, path] of Object.entries(paths)) {
    if (kind === "leftover-subvolume") {
      test.store.putImage(`${path}/disk.img`, gibibyte);
      test.store.allFiles.delete(`${path}/disk.img`);
    } else test.store.putFile(path, gibibyte);
    const { finding, remove } = await findOne(test, kind);
    assert.equal(finding.path, path);
    await remove();
    assert.equal(test.store.allFiles.has(path), false, kind);
    // Killed before it was told, and asked again.
    await remove();
  }
});

Deno.test("deleteOrphan() keeps an image whose disk came back, and what is protected", async () => {
  const test = audited();
  test.store.putImage(plainImage("pvc-9"), gibibyte);
  const { finding, remove } = await findOne(test, "image-without-disk");
  test.store.disks.set("pvc-9", aDisk(aRecord(), { id: "pvc-9", imagePath: plainImage("pvc-9") }));
  await assert.rejects(remove(), refusal("unavailable", /still there/));
  await assert.rejects(
    remove({ ...finding, kept: "it is published" }),
    refusal("precondition", /because it is published/),
  );
  assert.equal(test.store.allFiles.has(plainImage("pvc-9")), true);
});

Deno.test("an audit loop counts, deletes nothing unless told to, and then only what is old enough", async () => {
  for (const deleteOlderThanMs of [undefined, 86_400_000]) {
    const test = audited();
    const old = await used(test, "pvc-old");
    test.cluster.used = [
      aClusterVolume(await used(test, "pvc-a")),
      aClusterVolume(await used(test, "pvc-b")),
    ];
    await test.clock.advance(86_400_000);
    const young = await used(test, "pvc-young");
    test.store.putImage(plainImage("pvc-9"), gibibyte);
    await using _closing = { [Symbol.asyncDispose]: () => loop.close() };
    const loop = new AuditLoop(test.deps, { intervalMs: 3_600_000, deleteOlderThanMs });
    loop.start();
    await test.clock.advance(1_800_000);
    assert.deepEqual(
      test.notes.filter((note) => note.startsWith("counted")),
      ["counted: 1 image-without-disk", "counted: 2 disk-without-pv"],
    );
    assert.equal(test.store.disks.has(old), true);
    await test.clock.advance(3_600_000);
    assert.equal(test.store.disks.has(old), deleteOlderThanMs === undefined);
    assert.equal(test.store.disks.has(young), true);
    assert.equal(test.store.allFiles.has(plainImage("pvc-9")), true);
    assert.deepEqual(test.store.violations, []);
  }
});

Deno.test("an audit loop that leads again deletes only what it found twice since, and shows nothing in between", async () => {
  const test = audited();
  const id = await used(test, "pvc-a");
  test.cluster.used = [aClusterVolume(await used(test, "pvc-b"))];
  await test.clock.advance(2 * 86_400_000);
  const loop = new AuditLoop(test.deps, { intervalMs: 3_600_000, deleteOlderThanMs: 86_400_000 });
  const lead = async (ms: number) => {
    const stop = new AbortController();
    const over = loop.run(stop.signal);
    await test.clock.advance(ms);
    stop.abort(new Error("the lead is lost"));
    await over;
  };
  const ended = () => test.notes.filter((note) => note === "counted: nothing any more").length;
  for (const times of [1, 2, 3]) {
    await lead(1_800_000);
    assert.equal(ended(), times);
    await test.clock.advance(3_600_000);
    assert.equal(test.store.disks.has(id), true);
  }
  assert.equal(test.notes.filter((note) => note === "counted: 1 disk-without-pv").length, 3);
  await lead(2 * 3_600_000);
  assert.equal(test.store.disks.has(id), false);
  assert.equal(test.clock.waiting, 0);
});

function withFraction(fraction: number): Random {
  return { fraction: () => fraction, bytes: (count) => new Uint8Array(count) };
}

Deno.test("audits of several loops that start together do not begin together, and keep their distance", async () => {
  const begun: number[][] = [];
  for (const fraction of [0, 0.25, 0.75]) {
    const test = audited();
    const startMs = test.clock.now();
    const times: number[] = [];
    const events = { occurred: () => void times.push(test.clock.now() - startMs) };
    const deps = { ...test.deps, events, random: withFraction(fraction) };
    const loop = new AuditLoop(deps, { intervalMs: 3_600_000, deleteOlderThanMs: undefined });
    loop.start();
    await test.clock.advance(4_000_000);
    begun.push([...times]);
    await loop.close();
  }
  assert.deepEqual(begun, [[60_000, 3_660_000], [120_000, 3_720_000], [240_000, 3_840_000]]);
});

Deno.test("an audit loop tries again after a failure, and ends when it is closed", async () => {
  const test = audited();
  test.store.pools = [];
  const loop = new AuditLoop(test.deps, { intervalMs: 3_600_000, deleteOlderThanMs: undefined });
  loop.start();
  await test.clock.advance(2 * 3_600_000);
  assert.equal(test.notes.filter((note) => note.includes("the audit failed")).length, 2);
  await loop.close();
  assert.equal(test.clock.waiting, 0);
});

Deno.test("an audit loop keeps a volume whose object was replaced while it was looked for", async () => {
  for (const awayMs of [500, 1_800_000]) {
    const test = audited();
    const id = await used(test, "pvc-a");
    test.cluster.used = [aClusterVolume(id)];
    await test.clock.advance(2 * 86_400_000);
    await using _closing = { [Symbol.asyncDispose]: () => loop.close() };
    const deps = { ...test.deps, random: withFraction(0) };
    const loop = new AuditLoop(deps, { intervalMs: 3_600_000, deleteOlderThanMs: 86_400_000 });
    loop.start();
    await test.clock.advance(59_900);
    test.cluster.used = [];
    await test.clock.advance(awayMs);
    assert.ok(test.notes.every((note) => !note.startsWith("deleted")));
    test.cluster.used = [aClusterVolume(id)];
    await test.clock.advance(3 * 3_600_000);
    assert.equal(test.store.disks.has(id), true, `away for ${awayMs} ms`);
  }
});

Deno.test("deleteOrphan() keeps what the cluster uses by now, and what it does not tell of any more", async () => {
  const test = audited();
  const id = await used(test, "pvc-a");
  await test.clock.advance(3_600_000);
  const { remove } = await findOne(test, "disk-without-pv");
  test.cluster.used = [aClusterVolume(id)];
  await assert.rejects(remove(), refusal("precondition", /uses it now/));
  test.cluster.readable = false;
  await assert.rejects(remove(), refusal("unavailable"));
  assert.equal(test.store.disks.has(id), true);
});

Deno.test("deleteOrphan() keeps a snapshot while the cluster does not tell any more which ones it uses", async () => {
  const test = audited();
  const id = `snap-${"1".repeat(28)}`;
  const path = `${testBase}/${id}.pvc-1.${(1).toString(36)}.n.${testCluster}`;
  test.store.putImage(`${path}/disk.img`, gibibyte);
  test.cluster.snapshots = [];
  const { remove } = await findOne(test, "snapshot-without-object");
  // An object without a handle, for which this snapshot may be being made.
  test.cluster.snapshots = undefined;
  await assert.rejects(remove(), refusal("unavailable", /does not list the snapshots/));
  test.cluster.snapshots = [id];
  await assert.rejects(remove(), refusal("precondition", /uses it now/));
  assert.equal(test.store.allFiles.has(`${path}/disk.img`), true);
  test.cluster.snapshots = [];
  await remove();
  assert.equal(test.store.allFiles.has(`${path}/disk.img`), false);
});

Deno.test("an audit loop deletes nothing of a cluster that most volumes are missing from, and says so", async () => {
  for (const [all, tooFew, enough] of [[8, 3, 4], [3, 1, 2], [1, 0, 1]] as const) {
    const test = audited();
    const ids: string[] = [];
    for (let i = 0; i < all; i++) ids.push(await used(test, `pvc-${i}`));
    await test.clock.advance(2 * 86_400_000);
    await using _closing = { [Symbol.asyncDispose]: () => loop.close() };
    const loop = new AuditLoop(test.deps, { intervalMs: 3_600_000, deleteOlderThanMs: 86_400_000 });
    loop.start();
    test.cluster.used = ids.slice(0, tooFew).map((id) => aClusterVolume(id));
    await test.clock.advance(5 * 3_600_000);
    assert.equal(test.store.disks.size, all);
    assert.ok(test.notes.includes("the audit deletes nothing"));
    test.cluster.used = ids.slice(0, enough).map((id) => aClusterVolume(id));
    await test.clock.advance(5 * 3_600_000);
    assert.deepEqual([...test.store.disks.keys()].toSorted(), ids.slice(0, enough).toSorted());
  }
});

/** Eight volumes, all old; the cluster names the first ones. */
async function oldVolumes(test: ReturnType<typeof audited>): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let i = 0; i < 8; i++) ids.push(await used(test, `pvc-${i}`));
  test.cluster.used = ids.slice(0, 7).map((id) => aClusterVolume(id));
  await test.clock.advance(2 * 86_400_000);
  return ids;
}

/** A volume that a node of another cluster with this id holds. */
function theirDisk(): StoredVolume {
  const epoch = { counter: 1, nonce: "0a0b0c0d" };
  return aDisk(aRecord({ epoch, holders: [aHolder("theirs")] }), { id: "pvc-theirs" });
}

Deno.test("an audit loop deletes nothing while another cluster of the same id has a volume, and says so", async () => {
  const unknown = theirDisk();
  const uses: readonly Partial<StoredVolume>[] = [
    {},
    { exported: false },
    { comment: aDisk(aRecord({ withdrawnAtSeconds: 1 })).comment },
    { comment: "what a person wrote" },
  ];
  for (const use of uses) {
    const test = audited();
    const ids = await oldVolumes(test);
    test.store.put({ ...unknown, ...use });
    await using _closing = { [Symbol.asyncDispose]: () => loop.close() };
    const loop = new AuditLoop(test.deps, { intervalMs: 3_600_000, deleteOlderThanMs: 86_400_000 });
    loop.start();
    await test.clock.advance(5 * 3_600_000);
    assert.equal(test.store.disks.size, 9, JSON.stringify(use));
    assert.ok(test.notes.includes("the audit deletes nothing"));
    assert.match((await test.audit()).reasonAgainstAge ?? "", /^another cluster .*: volumes=pvc-theirs; /);
    test.cluster.used = [...test.cluster.used, aClusterVolume("pvc-theirs")];
    await test.clock.advance(5 * 3_600_000);
    assert.equal(test.store.disks.has(ids[7]!), false, "its object has come");
  }
});

Deno.test("an audit does not judge by age with the PersistentVolumes of another cluster, or without them", async () => {
  const cases: readonly (readonly [RegExp, (test: ReturnType<typeof audited>) => void])[] = [
    [/^more than half of its volumes .*: without=7 volumes=8$/, (test) => {
      test.cluster.used = test.cluster.used.slice(0, 1);
    }],
    [/^the cluster has no PersistentVolume of this driver/, (test) => (test.cluster.used = [])],
    [/^the cluster that answers has a PersistentVolume of another mark's volume: .*pvc-foreign/, (test) => {
      test.store.put(aDisk(aRecord({ cluster: "ffffffff" }), { id: "pvc-foreign" }));
      test.cluster.used = [...test.cluster.used, aClusterVolume("pvc-foreign")];
    }],
    [/^the cluster could not be asked: Cannot reach/, (test) => {
      const copy = `snap-${"1".repeat(28)}.pvc-1.${(1).toString(36)}.n.${testCluster}`;
      test.store.putFile(`${testBase}/${copy}.img.0011aabb.part`, gibibyte);
      test.cluster.readable = false;
    }],
  ];
  for (const [reason, change] of cases) {
    const test = audited();
    await oldVolumes(test);
    assert.equal((await test.audit()).reasonAgainstAge, undefined);
    change(test);
    assert.match((await test.audit()).reasonAgainstAge ?? "", reason);
  }
});

Deno.test("an audit has nothing to say about age where nothing can be deleted by it", async () => {
  const test = audited();
  test.store.put(aDisk(aRecord({ cluster: "ffffffff" }), { id: "pvc-foreign" }));
  const { findings, reasonAgainstAge } = await test.audit();
  assert.deepEqual([findings.map(({ kind }) => kind), reasonAgainstAge], [["other-cluster"], undefined]);
});

Deno.test("an audit counts young volumes without a PersistentVolume, too: in time they would all be old", async () => {
  const test = audited();
  const ids = await oldVolumes(test);
  for (let i = 10; i < 18; i++) await used(test, `pvc-${i}`);
  await using _closing = { [Symbol.asyncDispose]: () => loop.close() };
  const loop = new AuditLoop(test.deps, { intervalMs: 3_600_000, deleteOlderThanMs: 86_400_000 });
  loop.start();
  await test.clock.advance(5 * 3_600_000);
  assert.equal(test.store.disks.has(ids[7]!), true);
});

Deno.test("an audit deletes no volume that the router serves in another way, nor one that is exported since it was judged", async () => {
  const uses: readonly Partial<StoredVolume>[] = [
    { routerUses: ["it is exported over iSCSI"] },
    { routerUses: ["a disk is on it: disk=part1"] },
    { exported: true, exportNqn: "nqn.2014-08.org.example:rescue" },
  ];
  for (const use of uses) {
    const test = audited();
    const id = await used(test, "pvc-a");
    await test.clock.advance(3_600_000);
    const { remove } = await findOne(test, "disk-without-pv");
    test.store.edit(id, use);
    await assert.rejects(remove(), refusal("precondition", /router itself uses|was exported by hand/));
    assert.deepEqual(test.store.disks.get(id)?.exported, use.exported ?? false);
  }
});

Deno.test("a volume that a driver of another name has on the same router is kept, also when that is found late", async () => {
  const test = audited();
  const id = await used(test, "pvc-a");
  await test.clock.advance(3_600_000);
  const { remove } = await findOne(test, "disk-without-pv");
  test.cluster.others = [id];
  await assert.rejects(remove(), refusal("precondition", /uses it now/));
  const { findings } = await test.audit();
  assert.deepEqual(findings.map(({ kept }) => kept), [
    "a PersistentVolume of a driver of another name names it",
  ]);
});

Deno.test("an imported volume that no PersistentVolume names is told of, and never deleted, nor taken for one without its image", async () => {
  const test = audited();
  const disk = aDisk(aRecord(), { id: "films", imagePath: "/pool/images/films", exported: false });
  const source = importedSource(disk.id, disk.imagePath);
  const record = aRecord({ blankEpoch: 0, withdrawnAtSeconds: 1, source });
  test.store.put({ ...disk, comment: formatComment(newComment(record)) });
  const { findings, view } = await test.audit();
  assert.deepEqual(findings.map(({ kind }) => kind), ["disk-without-pv"]);
  assert.match(findings[0]!.kept ?? "", /it was imported/);
  await assert.rejects(deleteOrphan(test.deps, findings[0]!, view, testContext()), refusal("precondition"));
  assert.ok(test.store.allFiles.has(disk.imagePath));
  test.store.allFiles.delete(disk.imagePath);
  const kinds = (await test.audit()).findings.map(({ kind }) => kind);
  assert.deepEqual(kinds, ["disk-without-image", "disk-without-pv"]);
});
