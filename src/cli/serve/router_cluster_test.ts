import assert from "node:assert/strict";
import { aClusterVolume, anAttachment, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { inTime, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { auditRouter, deleteOrphan } from "../../controller/audit/audit.ts";
import { ReconcileLoop } from "../../controller/reconcile/loop.ts";
import type { ControllerEvent } from "../../volume/ports/controller_events.ts";
import { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import { reconciledOfRouter, sharedWithRouter, viewOfRouter } from "./router_cluster.ts";
import { VolumeLocks } from "../../csi/server/call.ts";

const epoch = { counter: 4, nonce: "0a0b0c0d" };
const graceMs = 600_000;
const publishContext = { epoch: "4-0a0b0c0d" };

/** A router with a volume `pvc-1` that node-1 has held for long, and its loops with what the cluster shows it. */
function routerOf(cluster: FakeClusterView, prefix: string) {
  const controller = testController();
  controller.store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] })));
  const own = reconciledOfRouter(new VolumeIdPrefix(prefix), cluster);
  const settings = { intervalMs: 60_000, reconcile: { mode: "on", graceMs }, namesOnRouter: true } as const;
  const rounds = new ReconcileLoop(controller.deps, own, settings);
  return {
    ...controller,
    ...volumeCalls(controller),
    async run() {
      const stop = new AbortController();
      const over = rounds.run(stop.signal);
      await controller.clock.advance(2 * graceMs);
      stop.abort(new Error("stopped"));
      await over;
    },
  };
}

const views: readonly (readonly [what: string, handles: readonly string[], exported: readonly boolean[]])[] =
  [
    ["both are wanted", ["pvc-1", "nas2/pvc-1"], [true, true]],
    ["the one without a prefix is wanted", ["pvc-1"], [true, false]],
    ["the one with a prefix is wanted", ["nas2/pvc-1"], [false, true]],
    ["a volume of no router is wanted", ["nas3/pvc-1", "nas2/pvc-2", "nas22/pvc-1"], [false, false]],
  ];

for (const [what, handles, exported] of views) {
  Deno.test(`of two volumes of one slot on two routers each is judged by its own attachments alone: ${what}`, async () => {
    const cluster = new FakeClusterView();
    const routers = ["", "nas2/"].map((prefix) => routerOf(cluster, prefix));
    for (const handle of handles) cluster.attach(handle, "node-1", { publishContext });
    for (const router of routers) await router.run();
    assert.deepEqual(routers.map(({ disk }) => disk().exported), exported);
    assert.deepEqual(routers.map(({ holders }) => holders()), exported.map((is) => is ? "node-1" : ""));
  });
}

Deno.test("an unwanted export is withdrawn though a volume of its id on another router has an object", async () => {
  const cluster = new FakeClusterView();
  cluster.used = ["pvc-1", "nas2/pvc-1"].map((handle) => aClusterVolume(handle));
  const routers = ["", "nas2/"].map((prefix) => routerOf(cluster, prefix));
  for (const router of routers) await router.run();
  assert.deepEqual(routers.map(({ disk }) => disk().exported), [false, false]);
});

Deno.test("an unwanted export stays where a driver of another name has an object of it, with any prefix", async () => {
  for (const handle of ["pvc-1", "nas2/pvc-1", "old/pvc-1"]) {
    const cluster = new FakeClusterView();
    cluster.others = [handle];
    const routers = ["", "nas2/"].map((prefix) => routerOf(cluster, prefix));
    for (const router of routers) await router.run();
    assert.deepEqual(routers.map(({ disk }) => disk().exported), [true, true], handle);
  }
});

Deno.test("an attachment whose volume is unknown keeps every router from withdrawing", async () => {
  const cluster = new FakeClusterView();
  const routers = ["", "nas2/"].map((prefix) => routerOf(cluster, prefix));
  cluster.list.push({
    volumeId: undefined,
    nodeName: "n",
    attached: true,
    deleting: false,
    published: {},
  });
  for (const router of routers) await router.run();
  assert.deepEqual(routers.map(({ disk }) => disk().exported), [true, true]);
});

Deno.test("a later epoch of the volume of that slot on another router withdraws nothing", async () => {
  const cluster = new FakeClusterView();
  const [bare, named] = ["", "nas2/"].map((prefix) => routerOf(cluster, prefix));
  cluster.attach("pvc-1", "node-1", { publishContext });
  cluster.attach("nas2/pvc-1", "node-1", { publishContext: { epoch: "9-0a0b0c0d" } });
  await bare!.run();
  await named!.run();
  assert.deepEqual([bare!.disk().exported, named!.disk().exported], [true, false]);
});

Deno.test("nothing is an orphan whose slot any PersistentVolume names, with any prefix", async () => {
  for (
    const [handle, findings, kept] of [["nas2/pvc-1", 0, 0], ["pvc-1", 1, 1], ["old/pvc-1", 1, 1], [
      "nas2/pvc-2",
      2,
      0,
    ]] as const
  ) {
    const cluster = new FakeClusterView();
    cluster.used = [aClusterVolume(handle)];
    const view = viewOfRouter(new VolumeIdPrefix("nas2/"), cluster, true);
    const test = testController({}, 1, view);
    test.store.put(aDisk(aRecord({ epoch })));
    const audit = await inTime(test.clock, auditRouter(test.deps, { vouched: false }, testContext()));
    const disks = audit.findings.filter(({ id }) => id === "pvc-1");
    assert.equal(audit.findings.length, findings, handle);
    assert.equal(disks.filter((one) => one.kept !== undefined).length, kept, JSON.stringify(disks));
    for (const one of disks.filter((one) => one.kept !== undefined)) {
      await assert.rejects(deleteOrphan(test.deps, one, audit.view, testContext()), /PersistentVolume/);
    }
    assert.ok(test.store.disks.has("pvc-1"));
  }
});

Deno.test("viewOfRouter() shows volumes and attachments of its own router, and orphans once", async () => {
  const cluster = new FakeClusterView();
  cluster.used = ["pvc-1", "nas2/pvc-1", "nas3/pvc-3"].map((handle) => aClusterVolume(handle));
  cluster.attached = ["pvc-1", "nas2/pvc-1"].map((handle) => anAttachment(handle, "node-1"));
  cluster.others = ["nas2/pvc-9"];
  cluster.orphans = [{ name: "a", volumeName: "pv", nodeName: "n", sinceSeconds: 0 }];
  const seen = async (prefix: string, reports: boolean) => {
    const view = viewOfRouter(new VolumeIdPrefix(prefix), cluster, reports);
    const context = testContext();
    return {
      volumes: (await view.volumes(context)).map(({ volumeId }) => volumeId),
      attachments: (await view.attachments(context)).map(({ volumeId }) => volumeId),
      others: [...await view.othersHandles(context)].toSorted(),
      orphans: (await view.unknownVolumeAttachments(context)).length,
      objects: await view.objectsOf("pvc-1", context),
    };
  };
  assert.deepEqual(await seen("", true), {
    volumes: ["pvc-1"],
    attachments: ["pvc-1"],
    others: ["nas2/pvc-1", "nas2/pvc-9", "nas3/pvc-3", "pvc-1", "pvc-3", "pvc-9"],
    orphans: 1,
    objects: ["pv-of-pvc-1"],
  });
  assert.deepEqual(await seen("nas2/", false), {
    volumes: ["pvc-1"],
    attachments: ["pvc-1"],
    others: ["nas2/pvc-9", "nas3/pvc-3", "pvc-1", "pvc-3", "pvc-9"],
    orphans: 0,
    objects: ["pv-of-nas2/pvc-1"],
  });
});

Deno.test("events and locks go by handles", () => {
  const reported: unknown[] = [];
  const locks = new VolumeLocks();
  const shared = {
    events: {
      occurred: (event: ControllerEvent) => {
        if (event.kind === "audited" || event.kind === "hardware-read") reported.push(event.kind);
        else if (event.kind === "inventory-read") {
          const { volumes, folders } = event.totals;
          reported.push(volumes.map(({ id }) => id), folders.map(({ pool }) => pool?.labelTakenBy));
        } else reported.push("about" in event ? event.about : event.volumeId);
      },
    },
    locks,
  };
  const { events, locks: own } = sharedWithRouter(new VolumeIdPrefix("nas2/"), shared, false);
  const claim = { namespace: "n", name: "c", uid: "u" };
  events.occurred({ kind: "attach-refused", volumeId: "pvc-1", nodeId: "n", message: "" });
  events.occurred({ kind: "out-of-space", about: "pvc-1", message: "" });
  events.occurred({ kind: "out-of-space", about: claim, message: "" });
  events.occurred({ kind: "audited", counts: new Map() });
  events.occurred({ kind: "hardware-read", read: undefined });
  const volume = {
    ...{ id: "pvc-1", sizeBytes: 1n, basePath: "/pool/csi", holders: [], exported: false },
    ...{ migrating: false, epoch: 0 },
  };
  const pool = { sizeBytes: 1n, freeBytes: 1n, diskBytes: 1n, snapshotBytes: undefined };
  const counts = { volumes: 1, attachments: 0, migrations: 0 };
  const folders = [{ ...pool, labelTakenBy: "pvc-1" }, pool, undefined].map((pool) => ({
    ...{ basePath: "/pool/csi", poolName: "pool", pool, ...counts },
  }));
  const totals = { folders, volumes: [volume], withSnapshots: false };
  events.occurred({ kind: "inventory-read", totals, atMs: 0 });
  const prefixed = [["nas2/pvc-1"], ["nas2/pvc-1", undefined, undefined]];
  assert.deepEqual(reported, ["nas2/pvc-1", "nas2/pvc-1", claim, "audited", "hardware-read", ...prefixed]);
  locks.take(["pvc-1"], "a call");
  const release = own.tryTake(["pvc-1"], "the loop");
  assert.ok(release !== undefined, "the other router's volume is another one");
  assert.equal(locks.tryTake(["nas2/pvc-1"], "a call"), undefined);
  release();
  assert.ok(locks.tryTake(["nas2/pvc-1"], "a call"));
});

Deno.test("the cluster is asked by handles whether a node has given up a volume, and which nodes may share it", async () => {
  const asked: string[] = [];
  const shared = sharedWithRouter(new VolumeIdPrefix("nas2/"), {
    events: { occurred: () => {} },
    locks: new VolumeLocks(),
    pairs: { reasonAgainst: ({ volumeId }) => (asked.push(volumeId), Promise.resolve("no pair")) },
    detachedNodes: { reasonAgainst: ({ volumeId }) => (asked.push(volumeId), Promise.resolve("away")) },
  }, false);
  const { signal } = new AbortController();
  assert.equal(
    await shared.pairs!.reasonAgainst({ volumeId: "pvc-1", nodeId: "a", holders: [] }, signal),
    "no pair",
  );
  const left = { volumeId: "pvc-1", nodeDigest: "0a0b0c0d" };
  assert.equal(await shared.detachedNodes!.reasonAgainst(left, signal), "away");
  assert.deepEqual(asked, ["nas2/pvc-1", "nas2/pvc-1"]);
});

Deno.test("each router gets the names of its own volumes and snapshots", async () => {
  const cluster = new FakeClusterView();
  const named = (id: string) => ({ id, namespace: "default", name: "a", className: "" });
  cluster.named = ["pvc-1", "nas2/pvc-1", "nas2/pvc-2", "nas3/pvc-3"].map(named);
  for (const [prefix, ids] of [["", ["pvc-1"]], ["nas2/", ["pvc-1", "pvc-2"]]] as const) {
    const names = await reconciledOfRouter(new VolumeIdPrefix(prefix), cluster).names(testContext());
    assert.deepEqual(names, ids.map(named));
  }
});
