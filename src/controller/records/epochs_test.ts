// Epochs only grow: also where the router has gone back in time, and only the cluster knows what nodes were given since.
import assert from "node:assert/strict";
import { anAttachment, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { aCreate, inTime, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import { withdrawVolume } from "../attachments/unpublish.ts";
import { VolumeMemory } from "./memory.ts";
import { allowFormat } from "../volumes/allow_format.ts";
import { createVolume } from "../volumes/create.ts";

const context = testContext();
const id = "pvc-1";
const nqn = (epoch: string) => `nqn.2000-02.com.mikrotik:${id}:${epoch}`;
const epoch = { counter: 3, nonce: "0a0b0c0d" };
const held = { holders: [aHolder("n1")] };

/** A volume whose router has gone back to its epoch 3; the node n2 got epoch 4 since. */
function goneBack(over: Partial<VolumeRecord> = {}, latest = 4) {
  const view = new FakeClusterView();
  const made = testController({ unexportGraceMs: 0 }, 1, view);
  const { store, clock } = made;
  const deps = { ...made.deps, memory: new VolumeMemory(made.deps.clock, true) };
  const record = aRecord({ epoch, blankEpoch: 0, ...over });
  store.put(
    aDisk(record, { exported: record.holders.length > 0, exportNqn: nqn("3-0a0b0c0d"), exportPort: 4420 }),
  );
  view.attached = [anAttachment(id, "n2", { epochCounter: latest })];
  const done = <T>(work: Promise<T>) => inTime(clock, work);
  const calls = volumeCalls({ ...made, deps });
  const counter = () => calls.record().epoch!.counter;
  /** Changes the record, so that this process remembers it although it is an old one. */
  const remember = () => calls.expand();
  return { ...made, ...calls, deps, view, done, counter, remember };
}

for (const remembers of [false, true]) {
  const how = remembers ? "remembered" : "read";

  Deno.test(`a publish begins an epoch that is later than any that the cluster knows: ${how}`, async () => {
    const { publish, remember, counter, holders } = goneBack();
    if (remembers) await remember();
    await publish("n1");
    assert.deepEqual([counter(), holders()], [5, "n1"]);
  });

  Deno.test(`after an unpublish by the record's own holder the next epoch is later than any that the cluster knows: ${how}`, async () => {
    const { publish, unpublish, remember, counter, store, view } = goneBack(held);
    if (remembers) await remember();
    await unpublish("n1");
    assert.deepEqual([store.disks.get(id)!.exported, counter()], [false, 4]);
    // By now the attachment of the node that only the cluster knew is gone, too.
    view.attached = [];
    await publish("n3");
    assert.equal(counter(), 5);
  });
}

Deno.test("a publish is not refused for a holder that was shut out before a later epoch", async () => {
  const { publish, counter, holders, events } = goneBack(held);
  await publish("n2");
  assert.deepEqual([counter(), holders()], [5, "n2"]);
  const older = { kind: "older-epoch", volumeId: id, recorded: 3, known: 4, withdrawn: true };
  assert.deepEqual(events, [older]);
});

Deno.test("a publish to the holder of an older record is answered with no name that was shut out", async () => {
  const { publish, counter, store } = goneBack(held);
  await publish("n1");
  assert.equal(counter(), 5);
  assert.ok(!store.disks.get(id)!.exportNqn.endsWith("3-0a0b0c0d"));
});

Deno.test("a withdrawal by a person's word keeps what only the cluster knows", async () => {
  const { deps, done, counter } = goneBack(held);
  await done(withdrawVolume(deps, id, context));
  assert.equal(counter(), 4);
});

Deno.test("a format is allowed in the epoch that really comes next", async () => {
  const { deps, done, publish } = goneBack();
  await done(allowFormat(deps, id, context));
  const published = await publish("n1");
  assert.deepEqual([published["epoch"]!.split("-")[0], published["mayFormat"]], ["5", "true"]);
});

Deno.test("the cluster is asked once for a record that this process has not written, and never for its own", async () => {
  const { publish, unpublish, view } = goneBack({}, 3);
  for (const node of ["n1", "n2"]) {
    await publish(node);
    await publish(node);
    await unpublish(node);
    await unpublish(node);
  }
  assert.equal(view.askedEpochs, 1);
  const made = testController({ unexportGraceMs: 0 }, 1, view, true);
  const alone = { ...made, deps: { ...made.deps, memory: new VolumeMemory(made.clock, true) } };
  await inTime(made.clock, createVolume(alone.deps, aCreate("new"), context));
  await volumeCalls(alone, volumeIdFor("new")).publish("n1");
  assert.equal(view.askedEpochs, 1);
});

Deno.test("a record that comes back is another one than this process has written last: the cluster is asked again", async () => {
  const { publish, unpublish, view, store, counter } = goneBack({}, 3);
  const before = store.disks.get(id)!;
  await publish("n1");
  await unpublish("n1");
  await publish("n2");
  view.attached = [anAttachment(id, "n2", { epochCounter: 5 })];
  store.put(before);
  await publish("n1");
  assert.equal(counter(), 6);
});

Deno.test("while the cluster does not answer a step goes on, an answer without a step does not, and both ask again", async () => {
  const { publish, unpublish, view, counter, notes } = goneBack(held, 3);
  view.readable = false;
  await unpublish("n1");
  await assert.rejects(unpublish("n1"), refusal("unavailable"));
  await publish("n1");
  assert.equal(counter(), 4);
  assert.ok(notes.some((note) => /latest epoch/.test(note)), String(notes));
  view.readable = true;
  view.attached = [anAttachment(id, "n2", { epochCounter: 4 })];
  await unpublish("n1");
  assert.ok(view.askedEpochs > 3);
});

Deno.test("a cluster that never answers holds a step up for seconds only", async () => {
  const { publish, view, counter, clock } = goneBack({}, 3);
  view.latestEpoch = () => new Promise(() => {});
  const startedMs = clock.now();
  await publish("n1");
  assert.ok(clock.now() - startedMs < 10_000);
  assert.equal(counter(), 4);
});

Deno.test("a volume on record as never written waits for the cluster's word, as the record may be an old one", async () => {
  const record = { epoch: { counter: 0, nonce: "0a0b0c0d" }, blankEpoch: 1 };
  const { publish, view, counter, store } = goneBack(record, 1);
  store.edit(id, { exportNqn: "" });
  view.readable = false;
  const before = store.snapshot();
  await assert.rejects(publish("n1"), refusal("unavailable", /on record as never written, and the cluster/));
  assert.deepEqual(store.snapshot(), before);
  view.readable = true;
  assert.equal((await publish("n1"))["mayFormat"], "false");
  assert.equal(counter(), 2);
});

Deno.test("an owner's consent to a format waits for the cluster's word, as it may have been used before", async () => {
  const { deps, view, store, clock } = goneBack({}, 4);
  const consents = { claimOf: () => undefined, allowsFormat: () => Promise.resolve(true) };
  const { publish } = volumeCalls({ store, clock, deps: { ...deps, consents } });
  view.readable = false;
  const before = store.snapshot();
  await assert.rejects(publish(), refusal("unavailable", /on record as never written/));
  assert.deepEqual(store.snapshot(), before);
  view.readable = true;
  assert.equal((await publish())["mayFormat"], "true");
});

Deno.test("a cluster that answers late shortens no grace, though the router's uptime was read before and is short", async () => {
  const view = new FakeClusterView();
  const { deps, store, clock } = testController({}, 1, view);
  store.lingerMs = 10_000;
  store.put(aDisk(aRecord({ epoch, ...held }), { exported: true, exportNqn: nqn("3-0a0b0c0d") }));
  store.reboot();
  await clock.advance(1_000);
  await volumeCalls({ deps, store, clock }).unpublish("n1");
  const fresh = { ...deps, memory: new VolumeMemory(deps.clock, false) };
  view.latestEpoch = () => new Promise(() => {});
  await volumeCalls({ deps: fresh, store, clock }).publish("n2");
  assert.deepEqual(store.violations, []);
});
