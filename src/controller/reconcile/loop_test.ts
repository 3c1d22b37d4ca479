import assert from "node:assert/strict";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, testBase, testPrefix } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { VolumeError } from "../../volume/errors.ts";
import { epochNqn } from "../../volume/model/epoch.ts";
import { unfencedNode } from "../../volume/model/record.ts";
import type { DetachedNode } from "../../volume/ports/cluster_ports.ts";
import { eventText } from "../../volume/rules/event_text.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { ReconcileLoop, type ReconcileLoopSettings } from "./loop.ts";

const epoch = { counter: 4, nonce: "0a0b0c0d" };
const graceMs = 600_000;
const hour = 3_600_000;

/** A volume that node-1 has held for long, an API server, and the loops. */
function scene(mode: ReconcileLoopSettings["reconcile"]["mode"] = "on") {
  const controller = testController();
  const { store, clock, deps, events } = controller;
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] })));
  const cluster = new FakeClusterView();
  const rounds = new ReconcileLoop(deps, cluster, {
    intervalMs: 60_000,
    reconcile: { mode, graceMs },
    namesOnRouter: true,
  });
  const stop = new AbortController();
  return {
    ...controller,
    ...volumeCalls(controller),
    cluster,
    disk: (id = "pvc-1") => store.disks.get(id)!,
    kinds: () => events.map(({ kind }) => kind),
    /** Lets the loops run for a while. */
    async run(ms: number) {
      const over = rounds.run(stop.signal);
      await clock.advance(ms);
      stop.abort(new Error("stopped"));
      await over;
    },
  };
}

Deno.test("an export that was turned off behind its node's back is on again, under the same NQN and port", async () => {
  const { cluster, store, disk, events, run } = scene();
  const before = disk();
  cluster.attach("pvc-1", "node-1");
  store.edit("pvc-1", { exported: false });
  await run(0);
  assert.deepEqual(disk(), before);
  assert.deepEqual(events, [{ kind: "export-restored", volumeId: "pvc-1", nodeIds: ["node-1"] }]);
});

Deno.test("an export that was renamed, or lost with its port, is as the node knows it again", async () => {
  const { cluster, store, disk, run } = scene();
  const nqn = epochNqn(testPrefix, "pvc-1", epoch);
  const publishContext = { epoch: "4-0a0b0c0d", nqn, nvmePort: "4421" };
  cluster.attach("pvc-1", "node-1", { publishContext });
  store.edit("pvc-1", { exportNqn: "nqn.2000-02.com.mikrotik:x", exportPort: 0 });
  await run(0);
  assert.deepEqual([disk().exported, disk().exportNqn, disk().exportPort], [true, nqn, 4421]);
});

Deno.test("an export that nodes know by a prefix which this driver does not give is left to a person", async () => {
  const { cluster, store, disk, notes, run } = scene();
  const publishContext = { epoch: "4-0a0b0c0d", nqn: "nqn.2020-01.old:pvc-1:4-0a0b0c0d" };
  cluster.attach("pvc-1", "node-1", { publishContext });
  store.edit("pvc-1", { exported: false, exportNqn: "" });
  await run(0);
  assert.equal(disk().exported, false);
  assert.match(notes.join(), /another NQN/);
});

Deno.test("nothing is exported that nobody holds, or whose pool is not mounted", async () => {
  const { cluster, store, disk, run } = scene();
  store.put(aDisk(aRecord({ epoch }), { id: "pvc-2", exported: false }));
  for (const id of ["pvc-1", "pvc-2"]) cluster.attach(id, "node-1");
  store.edit("pvc-1", { exported: false });
  store.pools = [];
  await run(0);
  assert.deepEqual([disk().exported, disk("pvc-2").exported], [false, false]);
});

Deno.test("an export that the cluster wants nowhere is withdrawn after the grace, and not before", async () => {
  const first = scene();
  await first.run(graceMs - 60_000);
  assert.equal(first.disk().exported, true);
  const { disk, record, events, run } = scene();
  await run(graceMs + 60_000);
  assert.deepEqual([disk().exported, record().holders], [false, []]);
  assert.deepEqual(events, [
    { kind: "export-unwanted", volumeId: "pvc-1", nodeIds: ["node-1"], withdrawn: true },
  ]);
});

Deno.test("a holder that no attachment names is taken away for the node that waits, and not before the grace", async () => {
  const first = scene();
  first.cluster.attach("pvc-1", "node-2", { attached: false });
  await first.run(graceMs - 60_000);
  assert.equal(first.disk().exported, true);
  const { cluster, disk, record, publish, clock, run } = scene();
  cluster.attach("pvc-1", "node-2", { attached: false });
  const before = disk().exportNqn;
  await run(graceMs + 60_000);
  assert.deepEqual([disk().exported, record().holders], [false, []]);
  await clock.advance(60_000);
  await publish("node-2");
  assert.equal(disk().exported, true);
  assert.notEqual(disk().exportNqn, before);
});

Deno.test("of two holders the one that no attachment names is taken away, so that the next node may join", async () => {
  const { store, cluster, disk, holders: now, run } = scene();
  const mode = "multi-node-multi-writer";
  const holders = [aHolder("node-1", { mode }), aHolder("node-2", { mode })];
  store.put(aDisk(aRecord({ epoch, holders })));
  cluster.attach("pvc-1", "node-1");
  cluster.attach("pvc-1", "node-3", { nodeId: "node-3", attached: false });
  await run(graceMs + 60_000);
  assert.deepEqual([now(), disk().exported], ["node-1", true]);
});

Deno.test("a holder stays as long as any attachment of the volume is done, or is that node's", async () => {
  for (const over of [{}, { attached: false, nodeName: "node-1" }]) {
    const { cluster, disk, run } = scene();
    cluster.attach("pvc-1", "node-2", over);
    await run(2 * graceMs);
    assert.equal(disk().exported, true);
  }
});

Deno.test("one that this cluster has no object of stays, as another cluster may use it, and is told of", async () => {
  const { cluster, disk, events, notes, run } = scene();
  cluster.unnamed.add("pvc-1");
  await run(2 * graceMs);
  assert.equal(disk().exported, true);
  assert.match(notes.join(), /left on exports that no VolumeAttachment wants/);
  assert.ok(
    events.length > 0 && events.every((event) => event.kind === "export-unwanted" && !event.withdrawn),
  );
});

Deno.test("one that an object of a driver of another name names too stays, as that one's attachments are not read", async () => {
  const { cluster, disk, events, run } = scene();
  cluster.others = ["pvc-1"];
  await run(2 * graceMs);
  assert.equal(disk().exported, true);
  assert.ok(
    events.length > 0 && events.every((event) => event.kind === "export-unwanted" && !event.withdrawn),
  );
});

for (
  const [what, othersHandles] of [
    ["cannot be read", () => Promise.reject(new VolumeError("unavailable", "Cannot reach the API server"))],
    [
      "does not come",
      ({ signal }: CallContext) =>
        new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    ],
  ] as const
) {
  Deno.test(`while the list of what others name ${what}, exports are restored and none is withdrawn`, async () => {
    const { cluster, store, clock, disk, events, notes, run } = scene();
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-2")] }), { id: "pvc-2" }));
    cluster.attach("pvc-2", "node-2");
    cluster.othersHandles = othersHandles;
    // By then the other volume is due.
    clock.timer(graceMs + 90_000, () => store.edit("pvc-2", { exported: false }));
    await run(hour);
    assert.deepEqual([disk().exported, disk("pvc-2").exported], [true, true]);
    assert.deepEqual(events.filter(({ kind }) => kind.startsWith("export-")), [
      { kind: "export-restored", volumeId: "pvc-2", nodeIds: ["node-2"] },
    ]);
    assert.deepEqual(notes, ["cannot compare the router with the cluster; retrying"]);
  });
}

Deno.test("an epoch that began while the cluster was asked is not taken for one that the router forgot", async () => {
  const { cluster, store, disk, events, run } = scene();
  cluster.onAsked = (asked) => {
    if (asked > 1) return;
    const record = aRecord({ epoch: { counter: 6, nonce: "ffffffff" }, holders: [aHolder("node-2")] });
    store.edit("pvc-1", { comment: aDisk(record).comment, exportNqn: aDisk(record).exportNqn });
    cluster.attach("pvc-1", "node-2", { publishContext: { epoch: "6-ffffffff" } });
  };
  await run(0);
  assert.equal(disk().exported, true);
  assert.deepEqual(events, []);
});

Deno.test("one that is wanted again in the last moment stays", async () => {
  const { cluster, disk, events, run } = scene();
  // A round has just found it unwanted for long enough, and asks once more.
  cluster.onAsked = (asked) => {
    if (asked === 12) cluster.attach("pvc-1", "node-1", { attached: false, nodeId: "node-1" });
  };
  await run(2 * graceMs);
  assert.ok(cluster.asked > 12);
  assert.equal(disk().exported, true);
  assert.deepEqual(events, []);
});

Deno.test("one that a call is changing is left to that call", async () => {
  const { deps, disk, run } = scene();
  const release = deps.locks.tryTake(["pvc-1"], "a call");
  await run(2 * graceMs);
  assert.equal(disk().exported, true);
  assert.notEqual(release, undefined);
});

for (
  const [what, change] of Object.entries({
    "was published": { comment: aDisk(aRecord({ epoch, holders: [aHolder("x")] })).comment },
    "got another file": { imagePath: `${testBase}/a-copy.img` },
  })
) {
  Deno.test(`one that ${what} while it was read stays`, async () => {
    const { deps, store, cluster, disk, clock, run } = scene();
    store.put(aDisk(aRecord({ epoch }), { exported: true }));
    cluster.onAsked = (asked) => {
      if (asked === 12) store.mishap("view", { before: () => store.edit("pvc-1", change) });
    };
    await run(graceMs + 30_000);
    assert.equal(disk().exported, true);
    assert.ok(clock.now() > 0 && deps.locks.tryTake(["pvc-1"], "afterwards") !== undefined);
  });
}

Deno.test("a cluster that was restored from an old backup loses nothing", async () => {
  const { cluster, store, disk, events, notes, run } = scene();
  for (let i = 2; i <= 20; i++) {
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] }), { id: `pvc-${i}` }));
  }
  cluster.attach("pvc-20", "node-1");
  await run(hour);
  assert.ok(
    Array.from({ length: 20 }, (_, i) => disk(`pvc-${i + 1}`).exported).every((exported) => exported),
  );
  assert.match(notes.join(), /left on exports/);
  assert.ok(events.every((event) => event.kind === "export-unwanted" && !event.withdrawn));
});

/** Four volumes of node-1 whose detaches the router has forgotten: their pods wait on node-2. */
function forgottenDetaches(
  mode: "on" | "dry-run",
  reasonAgainst: (node: DetachedNode) => string | undefined,
) {
  const all = scene(mode);
  const ids = ["pvc-1", "pvc-2", "pvc-3", "pvc-4"];
  for (const id of ids) {
    all.store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] }), { id }));
    all.cluster.attach(id, "node-2", { attached: false, nodeId: "node-2" });
  }
  const asked: DetachedNode[] = [];
  Object.assign(all.deps, {
    detachedNodes: {
      reasonAgainst: (node: DetachedNode) => (asked.push(node), Promise.resolve(reasonAgainst(node))),
    },
  });
  return { ...all, asked, exported: () => ids.filter((id) => all.disk(id).exported) };
}

Deno.test("a small cluster gets volumes back whose detaches the router has forgotten, once their node has given them up", async () => {
  const { asked, exported, run, events, ...made } = forgottenDetaches("on", () => undefined);
  await run(2 * graceMs);
  assert.deepEqual(exported(), []);
  assert.equal(volumeCalls(made, "pvc-4").holders(), "");
  const { nodeDigest, sinceSeconds } = unfencedNode(aHolder("node-1"));
  assert.deepEqual(asked[0], { volumeId: "pvc-1", nodeDigest, sinceSeconds });
  assert.ok(events.every((event) => event.kind === "export-unwanted" && event.withdrawn));
});

Deno.test("volumes that their node may still use are held back, and the command that ends that is named", async () => {
  const { exported, run, events, notes } = forgottenDetaches("on", () => "its kubelet uses the volume");
  await run(2 * graceMs);
  assert.equal(exported().length, 4);
  assert.match(notes.join(), /left on exports that no VolumeAttachment wants/);
  const texts = events.flatMap((event) => event.kind === "export-unwanted" ? [eventText(event).message] : []);
  assert.match(texts[0] ?? "", /rds-csi withdraw pvc-1 --vouch/);
});

Deno.test("of many volumes that are held back a few are asked about in a round, and all in time", async () => {
  const { store, clock, cluster, asked, run, disk } = forgottenDetaches(
    "on",
    ({ volumeId }) => volumeId === "pvc-40" ? undefined : "its kubelet uses the volume",
  );
  for (let i = 5; i <= 40; i++) {
    const id = `pvc-${i}`;
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] }), { id }));
    cluster.attach(id, "node-2", { attached: false, nodeId: "node-2" });
  }
  const counts: number[] = [];
  for (const rounds of [0, 1]) {
    clock.timer(graceMs + 30_000 + rounds * 60_000, () => counts.push(asked.length));
  }
  await run(graceMs + 10 * 60_000);
  assert.deepEqual(counts, [10, 20]);
  assert.equal(new Set(asked.map(({ volumeId }) => volumeId)).size, 40);
  assert.equal(disk("pvc-40").exported, false);
});

Deno.test("a dry run says of volumes that their node has given up that it would withdraw them", async () => {
  const { exported, notes, run } = forgottenDetaches("dry-run", () => undefined);
  await run(2 * graceMs);
  assert.equal(exported().length, 4);
  assert.ok(notes.some((note) => note.includes("--reconcile dry-run")));
});

Deno.test("nothing is done while the API server does not answer, and that is said once", async () => {
  const { cluster, store, disk, events, notes, run } = scene();
  cluster.readable = false;
  store.edit("pvc-1", { exported: false });
  await run(hour);
  assert.equal(disk().exported, false);
  assert.deepEqual(events, []);
  assert.equal(notes.length, 1);
});

for (const mode of ["off", "dry-run"] as const) {
  Deno.test(`--reconcile ${mode} changes nothing${mode === "off" ? "" : ", and says what it would"}`, async () => {
    const { cluster, store, disk, notes, run } = scene(mode);
    cluster.attach("pvc-2", "node-1");
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] }), { id: "pvc-2", exported: false }));
    await run(hour);
    assert.deepEqual([disk().exported, disk("pvc-2").exported], [true, false]);
    assert.equal(notes.some((note) => note.includes("--reconcile dry-run")), mode === "dry-run");
  });
}

for (const mode of ["on", "off", "dry-run"] as const) {
  Deno.test(`an epoch that the cluster knows and the router has forgotten is withdrawn and reported with --reconcile ${mode}`, async () => {
    const { cluster, disk, record, events, run } = scene(mode);
    cluster.attach("pvc-1", "node-2", { publishContext: { epoch: "6-ffffffff" } });
    await run(0);
    assert.deepEqual([disk().exported, record().holders], [false, []]);
    const event = { kind: "older-epoch", volumeId: "pvc-1", recorded: 4, known: 6, withdrawn: true } as const;
    assert.deepEqual(events, [event]);
  });
}

Deno.test("an export that a person turns on under an earlier name than an attachment's is withdrawn, once", async () => {
  const { cluster, disk, events, run, store } = scene();
  cluster.attach("pvc-1", "node-1", { publishContext: { epoch: "4-0a0b0c0d" } });
  const exportNqn = "nqn.2000-02.com.mikrotik:pvc-1:3-0a0b0c0d";
  store.put(aDisk(aRecord({ epoch }), { exported: true, exportNqn }));
  await run(120_000);
  assert.equal(disk().exported, false);
  assert.deepEqual(events, [{
    kind: "older-epoch",
    volumeId: "pvc-1",
    recorded: 3,
    known: 4,
    withdrawn: true,
  }]);
});

Deno.test("the epoch that follows one which the router has forgotten is later for every node", async () => {
  for (const exported of [true, false]) {
    const { cluster, store, record, publish, events, clock, run } = scene();
    store.edit("pvc-1", { exported });
    cluster.attach("pvc-1", "node-2", { publishContext: { epoch: "6-ffffffff" } });
    await run(120_000);
    assert.deepEqual([record().epoch?.counter, record().holders], [6, []]);
    assert.notEqual(record().epoch?.nonce, "ffffffff");
    assert.equal(events.length, 1, "it is reported once");
    await clock.advance(60_000);
    const { epoch } = await publish("node-2");
    assert.match(epoch!, /^7-/);
  }
});

Deno.test("a holder that etcd has forgotten is taken away though another node is attached in an earlier epoch", async () => {
  const { cluster, disk, record, publish, clock, run } = scene();
  cluster.attach("pvc-1", "node-2", { publishContext: { epoch: "3-0a0b0c0d" } });
  await run(graceMs + 60_000);
  assert.deepEqual([disk().exported, record().holders], [false, []]);
  await clock.advance(60_000);
  const { epoch } = await publish("node-2");
  assert.match(epoch!, /^5-/);
});

Deno.test("a migration that takes too long is told of, by its own StorageClass's time", async () => {
  const { cluster, store, events, run } = scene();
  const since = Math.floor(Date.UTC(2026, 0, 1) / 1000);
  const mode = "multi-node-multi-writer";
  const holders = [aHolder("node-1", { mode }), aHolder("node-2", { mode, sinceSeconds: since })];
  store.put(aDisk(aRecord({ capabilities: "block/x", epoch, holders })));
  cluster.attach("pvc-1", "node-1");
  cluster.contexts.set("pvc-1", { migrationTimeoutSeconds: "60" });
  await run(125_000);
  assert.deepEqual(events, [
    { kind: "migration-overdue", volumeId: "pvc-1", older: "node-1", newer: "node-2", limitSeconds: 60 },
  ]);
});

Deno.test("a volume whose context cannot be used keeps no other one from being restored", async () => {
  const { cluster, store, disk, events, run } = scene();
  const holders = ["node-1", "node-2"].map((node) => aHolder(node, { mode: "multi-node-multi-writer" }));
  store.put(aDisk(aRecord({ epoch, holders }), { id: "pvc-2" }));
  for (const node of ["node-1", "node-2"]) cluster.attach("pvc-2", node);
  // As after a change of --backend.
  cluster.contexts.set("pvc-2", { backend: "another", migrationTimeoutSeconds: "60" });
  cluster.attach("pvc-1", "node-1");
  store.edit("pvc-1", { exported: false });
  await run(0);
  assert.equal(disk().exported, true);
  assert.deepEqual(events.map(({ kind }) => kind), ["migration-overdue", "export-restored"]);
});

Deno.test("what is wrong with a volume is told when it begins and when it ends", async () => {
  const { cluster, store, clock, events, run } = scene("off");
  cluster.attach("pvc-1", "node-1");
  store.edit("pvc-1", { exported: false });
  clock.timer(6 * 60_000, () => store.edit("pvc-1", { exported: true }));
  await run(20 * 60_000);
  assert.deepEqual(
    events.map((event) => event.kind === "health" && event.problems.map(({ reason }) => reason)),
    [["NotExported"], []],
  );
});

Deno.test("a volume that waits for a node without the driver is reported once, and not while it is attached", async () => {
  const { cluster, events, run } = scene();
  cluster.attach("pvc-1", "node-1");
  cluster.attach("pvc-2", "node-2", { attached: false });
  cluster.attach("pvc-3", "node-3", { attached: false, nodeId: "node-3" });
  cluster.attach("pvc-4", "node-4", { attached: false, deleting: true });
  await run(5 * 60_000);
  assert.deepEqual(events.filter(({ kind }) => kind === "node-without-driver"), [
    { kind: "node-without-driver", volumeId: "pvc-2", nodeName: "node-2" },
  ]);
});

Deno.test("a volume that the attacher is just about to attach is not reported", async () => {
  const { cluster, kinds, run } = scene();
  cluster.onAsked = (asked) => {
    cluster.list = [];
    if (asked === 1) cluster.attach("pvc-2", "node-2", { attached: false });
  };
  await run(5 * 60_000);
  assert.ok(!kinds().includes("node-without-driver"));
});
