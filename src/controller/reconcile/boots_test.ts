import assert from "node:assert/strict";
import { aClusterVolume, anAttachment, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { inTime, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { aDisk, aHolder, aRecord, testBase, testPrefix } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { ReconcileLoopSettings } from "./loop.ts";
import { getVolume } from "../volumes/read.ts";
import { RouterBoots } from "./boots.ts";
import { comparedStore } from "./compared_store.ts";
import { ReconcileLoop } from "./loop.ts";

const older = aDisk(aRecord({ epoch: { counter: 3, nonce: "00000003" }, holders: [aHolder("node-1")] }));
const newer = aDisk(aRecord({ epoch: { counter: 4, nonce: "00000004" }, holders: [aHolder("node-2")] }));
const nodeTwo = { publishContext: { epoch: "4-00000004" } };

/** A volume that node-1 had, and node-2 has: a loop that has just rested for the first time, and calls. */
async function scene(mode: ReconcileLoopSettings["reconcile"]["mode"] = "on") {
  const cluster = new FakeClusterView();
  const controller = testController({ unexportGraceMs: 0 }, 1, cluster);
  const { store, clock, deps } = controller;
  const boots = new RouterBoots(clock);
  store.booted = () => boots.noticed();
  store.put(newer);
  cluster.attach("pvc-1", "node-2", nodeTwo);
  const settings = { intervalMs: 60_000, reconcile: { mode, graceMs: 600_000 }, namesOnRouter: true };
  const loop = () => new ReconcileLoop(deps, cluster, settings, boots);
  let stop = new AbortController();
  let running = loop().run(stop.signal);
  await clock.advance(1_000);
  store.takeCount();
  const calls = { ...deps, store: comparedStore(store, boots) };
  return {
    ...controller,
    ...{ cluster, boots, calls },
    publish: volumeCalls({ ...controller, deps: calls }).publish,
    disk: (): StoredVolume => store.disks.get("pvc-1")!,
    /** The router boots, and has lost its last seconds. */
    powerCut() {
      store.reboot();
      store.disks.set("pvc-1", older);
    },
    /** The lead is lost for a while, and nobody else gets it. @param meanwhile what happens then */
    async leadsAgain(meanwhile: () => Promise<void>) {
      stop.abort(new Error("stopped"));
      await running;
      await meanwhile();
      stop = new AbortController();
      running = loop().run(stop.signal);
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("stopped"));
      await running;
    },
  };
}

for (const mode of ["on", "off", "dry-run"] as const) {
  Deno.test(`the first answer after a boot starts a round, which shuts a fenced node out again: --reconcile ${mode}`, async () => {
    await using at = await scene(mode);
    at.powerCut();
    await at.clock.advance(1_000);
    assert.equal(at.disk().exported, true, "nobody has asked the router yet");
    await at.store.probe(testContext());
    await at.clock.advance(0);
    assert.equal(at.disk().exported, false);
  });
}

const legacyId = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
/** What keeps the first try to take it over from succeeding. */
const hindrances: Readonly<Record<string, (at: Awaited<ReturnType<typeof scene>>) => void>> = {
  "at once": () => {},
  "though a call has it first": ({ deps, clock }) => {
    const release = deps.locks.tryTake([legacyId], "a call")!;
    clock.timer(150_000, release);
  },
  "though the command is lost first": ({ store }) =>
    store.mishap("change", { runs: false, unreadable: true }),
};

/** The router boots with a volume as the legacy driver has left it, of which a node has been given an epoch since. */
function goesBack({ cluster, store }: Awaited<ReturnType<typeof scene>>): void {
  cluster.used = [aClusterVolume(legacyId)];
  cluster.attached = [...cluster.attached, anAttachment(legacyId, "node-2", { epochCounter: 4 })];
  store.reboot();
  const exportNqn = `${testPrefix}:${legacyId}`;
  const imagePath = `${testBase}/${legacyId}.img`;
  store.put({ ...newer, id: legacyId, imagePath, comment: "", exported: true, exportNqn, exportPort: 4420 });
}

for (const [how, hinder] of Object.entries(hindrances)) {
  Deno.test(`a volume of the legacy driver that a boot brings back from before its take-over is shut out again: ${how}`, async () => {
    await using at = await scene("off");
    goesBack(at);
    hinder(at);
    await at.store.probe(testContext());
    await at.clock.advance(0);
    assert.equal(at.store.disks.get(legacyId)!.exported, true, "it may not show everything yet");
    await at.clock.advance(300_000);
    assert.equal(at.store.disks.get(legacyId)!.exported, false);
  });
}

Deno.test("a volume of the legacy driver that a boot brings back while nobody leads is shut out by whoever leads again", async () => {
  await using at = await scene("off");
  await at.leadsAgain(async () => {
    goesBack(at);
    await at.store.probe(testContext());
  });
  await at.clock.advance(300_000);
  assert.equal(at.store.disks.get(legacyId)!.exported, false);
});

Deno.test("a call whose read is the first answer since a boot waits for the round, and reads again", async () => {
  await using at = await scene();
  at.powerCut();
  const { record } = await inTime(at.clock, getVolume(at.calls, "pvc-1", testContext()));
  assert.deepEqual([record.epoch?.counter, record.holders], [4, []]);
  assert.equal(at.disk().exported, false);
  const before = at.clock.now();
  await getVolume(at.calls, "pvc-1", testContext());
  assert.equal(at.clock.now(), before);
});

Deno.test("no call asks a router that has not booted more often than it did", async () => {
  await using at = await scene();
  await getVolume(at.calls, "pvc-1", testContext());
  await at.publish("node-2");
  assert.deepEqual(at.store.calls.map(({ method }) => method), ["view", "view"]);
});

Deno.test("calls go on as without a cluster as soon as the API server is found away, and the round is tried again soon", async () => {
  await using at = await scene();
  at.powerCut();
  at.cluster.readable = false;
  const { record } = await inTime(at.clock, getVolume(at.calls, "pvc-1", testContext()), 1_000);
  assert.equal(record.epoch?.counter, 3);
  at.cluster.readable = true;
  await at.clock.advance(10_000);
  assert.equal(at.disk().exported, false);
});

Deno.test("calls wait at most 10 s for a cluster that does not answer", async () => {
  await using at = await scene();
  at.powerCut();
  const { promise, resolve } = Promise.withResolvers<[]>();
  at.cluster.allAttachments = () => promise;
  let isDone = false;
  const call = getVolume(at.calls, "pvc-1", testContext()).then(() => isDone = true);
  await at.clock.advance(9_999);
  assert.equal(isDone, false);
  await at.clock.advance(1);
  await call;
  resolve([]);
});

Deno.test("a call that waits ends with its own time", async () => {
  await using at = await scene();
  at.powerCut();
  const { promise, resolve } = Promise.withResolvers<[]>();
  at.cluster.allAttachments = () => promise;
  const call = rejectsWith(getVolume(at.calls, "pvc-1", fakeCall(at.clock, 2_000)), "deadline");
  await at.clock.advance(2_000);
  await call;
  resolve([]);
});

Deno.test("a call that keeps the round from its volume compares that itself, and the round looks again soon", async () => {
  await using at = await scene();
  at.cluster.attached = [{ ...attachment, epochCounter: 4 }];
  at.powerCut();
  const release = at.deps.locks.tryTake(["pvc-1"], "publish")!;
  assert.match((await at.publish("node-1"))["epoch"]!, /^5-/);
  at.store.disks.set("pvc-1", older);
  release();
  await at.clock.advance(10_000);
  assert.equal(at.disk().exported, false);
});

Deno.test("a disk that comes late with an older record is withdrawn soon, not at the next usual round", async () => {
  await using at = await scene();
  at.powerCut();
  at.store.hidden.add("pvc-1");
  await at.store.probe(testContext());
  await at.clock.advance(5_000);
  at.store.hidden.delete("pvc-1");
  await at.clock.advance(10_000);
  assert.equal(at.disk().exported, false);
});

Deno.test("without a loop, as without a cluster or on a replica that does not lead, no call waits", async () => {
  const { store, deps, clock } = testController();
  const boots = new RouterBoots(clock);
  store.booted = () => boots.noticed();
  store.put(older);
  store.reboot();
  const { record } = await getVolume({ ...deps, store: comparedStore(store, boots) }, "pvc-1", testContext());
  assert.equal(record.epoch?.counter, 3);
  assert.equal(clock.waiting, 0);
  assert.equal(store.takeCount(), 1);
});

for (const holds of [true, false]) {
  Deno.test(`a publish that an older record refuses asks the cluster first${holds ? "" : ", and is refused if that knows no later epoch"}`, async () => {
    const cluster = new FakeClusterView();
    const made = testController({ unexportGraceMs: 0 }, 1, cluster);
    const { publish, unpublish } = volumeCalls(made);
    made.store.put(older);
    if (holds) cluster.attached = [{ ...attachment, epochCounter: 4 }];
    if (!holds) return await rejectsWith(publish("node-3"), "published-elsewhere", /node-1/);
    assert.match((await publish("node-3")).epoch!, /^5-/);
    assert.deepEqual(made.events, [
      { kind: "older-epoch", volumeId: "pvc-1", recorded: 3, known: 4, withdrawn: true },
    ]);
    await unpublish("node-3");
  });
}

const attachment = { volumeId: "pvc-1", nodeId: "node-2", attached: true, sinceSeconds: 0, epochCounter: 3 };

Deno.test("a publish is refused as before while the cluster does not answer whether the record is older", async () => {
  const cluster = new FakeClusterView();
  const made = testController({}, 1, cluster);
  made.store.put(older);
  cluster.readable = false;
  await rejectsWith(volumeCalls(made).publish("node-3"), "published-elsewhere", /node-1/);
});
