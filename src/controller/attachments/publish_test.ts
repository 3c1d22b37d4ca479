import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  gibibyte,
  sharedBlock,
  testContext,
  testController,
  testParameters,
  writer,
} from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { PublishRequest } from "../../volume/rules/publish.ts";
import { formatComment, newComment, type VolumeRecord } from "../../volume/model/record.ts";
import { createVolume } from "../volumes/create.ts";
import { publishVolume } from "./publish.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };
const epochNqn = `${testPrefix}:pvc-1:3-0123abcd`;
const joint: Partial<PublishRequest> = { capability: sharedBlock };

/** A controller on a router with the volume `pvc-1`. */
function controller(
  record: Partial<VolumeRecord> = {},
  disk: Partial<StoredVolume> = {},
) {
  const made = testController();
  made.store.put(aDisk(aRecord(record), disk));
  return { ...made, ...volumeCalls(made) };
}

Deno.test("publishVolume() exports nothing while the pool of the image is not mounted", async () => {
  const { store, publish } = controller();
  const before = store.disks.get("pvc-1");
  const pools = store.pools;
  store.pools = [];
  await assert.rejects(publish("a"), refusal("unavailable", /not mounted/));
  assert.deepEqual(store.disks.get("pvc-1"), before);
  store.pools = pools;
  await publish("a");
});

Deno.test("publishVolume() refuses a disk that the router itself uses, in every epoch, and unpublishing it works", async () => {
  const routerUses = ["its file system is mounted", "it is shared over SMB"];
  const shared = { epoch, capabilities: "block/x", holders: [aHolder("a", { mode: sharedBlock.mode })] };
  const cases: [string, Partial<VolumeRecord>, Partial<StoredVolume>, Partial<PublishRequest>][] = [
    ["a new epoch", { epoch }, {}, {}],
    ["an export nobody holds", { epoch }, { exported: true }, {}],
    ["a join", shared, {}, joint],
    ["a held one", { epoch, holders: [aHolder("b")] }, {}, {}],
    ["a lost export", { epoch, holders: [aHolder("b")] }, { exported: false }, {}],
  ];
  for (const [name, record, disk, request] of cases) {
    const { store, publish, unpublish } = controller(record, { routerUses, ...disk });
    await refusedUnchanged(
      store,
      () => publish("b", request),
      refusal("precondition", /file system is mounted, it is shared over SMB.*mount-filesystem=no/),
      name,
    );
    for (const node of ["a", "b"]) await unpublish(node);
    assert.equal(store.disks.get("pvc-1")?.exported, false, name);
  }
});

Deno.test("publishVolume() does not answer OK when the router began to use the disk meanwhile", async () => {
  const { store, publish } = controller({ epoch });
  store.mishap("change", {
    after: () => store.edit("pvc-1", { routerUses: ["its file system is mounted"] }),
  });
  await assert.rejects(publish("a"), refusal("unavailable"));
  await assert.rejects(publish("a"), refusal("precondition", /the router itself uses its disk/));
});

Deno.test("publishVolume() lets the router mount nothing any more while nothing is exported, in no more commands", async () => {
  const mayBeMounted = true;
  for (const record of [{ epoch }, { epoch, holders: [aHolder("a")] }]) {
    const { store, publish } = controller(record, { mayBeMounted, exported: false });
    await publish("a");
    assert.deepEqual(store.calls.map(({ method }) => method), ["view", "change"]);
    assert.equal(store.disks.get("pvc-1")?.mayBeMounted, undefined);
  }
  const { store, publish } = controller({ epoch, holders: [aHolder("a")] }, { mayBeMounted });
  await publish("a");
  assert.deepEqual(store.calls.map(({ method }) => method), ["view"]);
  assert.equal(store.disks.get("pvc-1")?.mayBeMounted, true);
  const deaf = controller({ epoch }, { mayBeMounted });
  deaf.store.mishap("change", { after: () => deaf.store.edit("pvc-1", { mayBeMounted }) });
  await assert.rejects(deaf.publish("a"), refusal("unavailable"));
});

Deno.test("publishVolume() takes two commands, one when it is done, and answers the same", async () => {
  const { store, publish } = controller();
  const first = await publish("a");
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["view", "change"]);
  assert.deepEqual(await publish("a"), first);
  assert.deepEqual(store.calls.map((call) => call.method), ["view"]);
});

Deno.test("publishVolume() exports under the epoch's NQN and reports the node all that it needs", async () => {
  const made = testController();
  const { stored } = await createVolume(made.deps, aCreate("a"), context);
  const parameters = { ...testParameters, nvmeAddress: "10.9.9.9,fd00::1", nvmePort: 4444 };
  const answer = await publishVolume(made.deps, stored.id, aPublish("a"), parameters, context);
  const calls = volumeCalls(made, stored.id);
  const [disk, record] = [calls.disk(), calls.record()];
  assert.deepEqual([disk.exported, disk.exportNqn, disk.exportPort], [true, answer.nqn, 4444]);
  assert.equal(answer.nqn, `${testPrefix}:${stored.id}:1-${record.epoch?.nonce}`);
  assert.deepEqual(record.holders.map((holder) => holder.nodeId), ["a"]);
  assert.deepEqual(answer, {
    nvmeAddress: "10.9.9.9,fd00::1",
    nvmePort: "4444",
    nqn: disk.exportNqn,
    epoch: `1-${record.epoch?.nonce}`,
    size: String(gibibyte),
    readonly: "false",
    mayFormat: "true",
    imported: "false",
    nvme_address: "10.9.9.9",
    nvme_port: "4444",
    nvme_nqn: disk.exportNqn,
    fs_type: "ext4",
  });
});

Deno.test("publishVolume() allows formatting in the first epoch only, and never where it is read-only", async () => {
  const { publish, unpublish } = controller();
  assert.equal((await publish("a")).mayFormat, "true");
  assert.equal((await publish("a")).mayFormat, "true");
  await unpublish("a");
  assert.equal((await publish("a")).mayFormat, "false");

  const reading = await controller().publish("a", { readOnly: true });
  assert.deepEqual([reading.readonly, reading.mayFormat], ["true", "false"]);
  const mode = "single-node-reader-only";
  const reader = await controller().publish("a", { capability: { ...writer, mode } });
  assert.deepEqual([reader.readonly, reader.mayFormat], ["true", "false"]);
  const raw = await controller({ capabilities: "block/x" }).publish("a", joint);
  assert.deepEqual([raw.mayFormat, raw.fs_type], ["false", ""]);
});

Deno.test("publishVolume() refuses another node over a controller's restart, from the record alone", async () => {
  const { store, publish } = controller();
  await publish("a");
  const before = store.snapshot();
  const second = testController({}, 99);
  for (const disk of store.disks.values()) second.store.put(disk);
  const again = publishVolume(second.deps, "pvc-1", aPublish("b"), testParameters, context);
  await assert.rejects(again, refusal("published-elsewhere", /node=a requested=b/));
  assert.deepEqual([...second.store.disks], [...store.disks]);
  await assert.rejects(publish("a", { readOnly: true }), refusal("exists-incompatible"));
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("publishVolume() re-asserts a lost or edited export for its holder without a new epoch", async () => {
  const edits = [{ exported: false }, { exportNqn: "nqn.edited" }, { exportPort: 4421 }];
  for (const edit of edits) {
    const { store, publish } = controller({ epoch, holders: [aHolder("a")] }, edit);
    const before = store.disks.get("pvc-1")!.comment;
    const answer = await publish("a");
    assert.equal(answer.nqn, epochNqn);
    const { exported, exportNqn, exportPort, comment } = store.disks.get("pvc-1")!;
    assert.deepEqual([exported, exportNqn, exportPort, comment], [true, epochNqn, 4420, before]);
    assert.equal(store.takeCount(), 2);
  }
});

Deno.test("publishVolume() withdraws what nobody holds, waits out the grace, and begins a new epoch", async () => {
  const { store, publish } = controller({ epoch }, { exported: true });
  store.lingerMs = 10_000;
  const answer = await publish("a");
  assert.match(answer.epoch!, /^4-/);
  assert.deepEqual(store.calls.map((call) => call.method), ["view", "change", "view", "change"]);
  assert.deepEqual(store.violations, []);
});

Deno.test("publishVolume() waits out the grace of the last withdrawal, also when the clock is set on in between", async () => {
  for (const setMs of [0, 60_000, 3_600_000, -3_600_000]) {
    const { store, deps, clock, publish, unpublish } = controller();
    store.lingerMs = 10_000;
    await publish("a");
    await unpublish("a");
    await clock.advance(1_000);
    const set = {
      now: () => clock.now() + setMs,
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
      timer: (ms: number, callback: () => void) => clock.timer(ms, callback),
    };
    const later = { ...deps, clock: set };
    const startMs = clock.monotonicMs();
    await volumeCalls({ store, clock, deps: later }).publish("b");
    assert.ok(clock.monotonicMs() - startMs >= 9_000);
    assert.deepEqual(store.violations, [], `${setMs} ms`);
  }
});

Deno.test("publishVolume() waits the whole grace after a withdrawal that was carried out late and never read back", async () => {
  const { store, clock, publish, unpublish } = controller();
  store.lingerMs = 10_000;
  await publish("a");
  store.mishap("change", { takesMs: 15_000, unreadable: true });
  await assert.rejects(unpublish("a"), refusal("unavailable"));
  const startMs = clock.now();
  await publish("b");
  assert.ok(clock.now() - startMs >= 10_000);
  assert.deepEqual(store.violations, []);
});

Deno.test("publishVolume() counts no second withdrawal from the time of the first, though both are of one second", async () => {
  const { store, clock, publish, unpublish } = controller();
  store.lingerMs = 10_000;
  await publish("a");
  await unpublish("a");
  store.edit("pvc-1", { exported: true });
  store.mishap("change", { takesMs: 15_000, unreadable: true });
  await assert.rejects(publish("b"), refusal("unavailable"));
  const startMs = clock.now();
  await publish("b");
  assert.ok(clock.now() - startMs >= 10_000);
  assert.deepEqual(store.violations, []);
});

Deno.test("publishVolume() says at once that the grace outlasts the call, and changes nothing", async () => {
  const { store, deps, clock, publish, unpublish } = controller();
  await publish("a");
  await unpublish("a");
  const before = store.snapshot();
  const short = testContext({ deadlineMs: clock.now() + 9_000 });
  const call = publishVolume(deps, "pvc-1", aPublish("b"), testParameters, short);
  await assert.rejects(call, refusal("unavailable", /try again in 10 s/));
  assert.deepEqual(store.snapshot(), before);
  assert.equal(clock.waiting, 0);
});

Deno.test("publishVolume() gives up the wait for the grace when the caller goes away", async () => {
  const { store, deps, clock, publish, unpublish } = controller();
  await publish("a");
  await unpublish("a");
  const before = store.snapshot();
  const gone = new AbortController();
  const context = testContext({ signal: gone.signal });
  const call = publishVolume(deps, "pvc-1", aPublish("b"), testParameters, context);
  await clock.advance(1_000);
  gone.abort(new Error("gone"));
  await assert.rejects(call, /gone/);
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("publishVolume() believes what is read back, and never gives an NQN twice", async () => {
  for (const ending of endings) {
    const [name, mishap] = ending;
    const { store, publish } = controller();
    store.mishap("change", mishap);
    await endsAs(ending, publish("a"));
    const ranUnderNqn = store.disks.get("pvc-1")!.exportNqn;
    const answer = await publish("a");
    assert.equal(store.disks.get("pvc-1")!.exportNqn, answer.nqn);
    if (ranUnderNqn !== "") assert.equal(answer.nqn, ranUnderNqn, name);
    assert.match(answer.epoch!, /^1-/);
    assert.deepEqual(store.violations, []);
  }
});

Deno.test("publishVolume() does not answer OK for what was edited again before it was read back", async () => {
  const cases = [
    [{ exported: false }, "unavailable"],
    [{ exportNqn: "nqn.edited" }, "unavailable"],
    [{ exportPort: 4421 }, "unavailable"],
    [{ comment: aDisk(aRecord()).comment + " edited" }, "busy"],
  ] as const;
  for (const [edit, kind] of cases) {
    const { store, publish } = controller();
    store.mishap("change", { after: () => store.edit("pvc-1", edit) });
    await assert.rejects(publish("a"), refusal(kind), JSON.stringify(edit));
  }
});

Deno.test("publishVolume() is busy when the record changes between looking and acting, and changes nothing", async () => {
  const { store, publish } = controller();
  const taken = aDisk(aRecord({ epoch, holders: [aHolder("b")] }));
  store.mishap("change", { before: () => store.put(taken) });
  await assert.rejects(publish("a"), refusal("busy", /changed at the same time/));
  assert.deepEqual(store.disks.get("pvc-1"), taken);
  await assert.rejects(publish("a"), refusal("published-elsewhere"));
});

Deno.test("publishVolume() lets one of two controllers win, and only one", async () => {
  const { publish, holders } = controller();
  const results = await Promise.allSettled([publish("a"), publish("b")]);
  assert.deepEqual(results.map((result) => result.status), ["fulfilled", "rejected"]);
  assert.equal(holders(), "a");
});

Deno.test("publishVolume() refuses unknown nodes and volumes", async () => {
  const { store, deps, publish } = controller();
  await assert.rejects(publish("stranger"), refusal("node-unknown", /node=stranger/));
  const missing = publishVolume(deps, "pvc-2", aPublish("a"), testParameters, context);
  await assert.rejects(missing, refusal("not-found", /volume=pvc-2/));
  store.reboot();
  const early = publishVolume(deps, "pvc-2", aPublish("a"), testParameters, context);
  await assert.rejects(early, refusal("unavailable"));
});

Deno.test("publishVolume() refuses an image that can be reached through another disk too", async () => {
  const { store, publish } = controller();
  store.put({ ...store.disks.get("pvc-1")!, id: "other", exported: true, exportNqn: "nqn.other" });
  await refusedUnchanged(
    store,
    () => publish("a"),
    refusal("precondition", /another disk uses its image: .*disk=other/),
  );
});

Deno.test("publishVolume() refuses holders that do not fit into the record before it changes anything", async () => {
  const holders = [aHolder("n".repeat(64), { mode: "multi-node-multi-writer" })];
  const { store, publish } = controller({
    capabilities: "block/x",
    epoch,
    holders,
    source: `v:${"s".repeat(32)}`,
  });
  await refusedUnchanged(store, () => publish("m".repeat(64), joint), refusal("precondition"));
  assert.equal(store.calls.length, 1);
});

Deno.test("publishVolume() keeps what a person wrote beside the record", async () => {
  const note = formatComment({ ...newComment(aRecord()), before: "gold ", after: " #7" });
  const { store, publish } = controller({}, { comment: note });
  await publish("a");
  assert.match(store.disks.get("pvc-1")!.comment, /^gold \{rds1 .*\} #7$/);
});

Deno.test("publishVolume() refuses a disk that was copied on the router, record and all", async () => {
  const { store, deps, publish, disk, record } = controller();
  await publish("a");
  const comment = formatComment(newComment({ ...record(), holders: [] }));
  store.disks.set("copy", { ...disk(), id: "copy", comment, exported: false });
  await refusedUnchanged(
    store,
    () => publishVolume(deps, "copy", aPublish("b"), testParameters, context),
    refusal("precondition", /a file of another name/),
  );
});

Deno.test("publishVolume() tells a node which machine it was published to, and keeps to that while the node holds it", async () => {
  const { store, deps, clock } = controller();
  let machine: string | undefined = "0a0b0c0d";
  let asked = 0;
  const nodes = { ...deps.nodes, machineOf: () => (asked++, Promise.resolve(machine)) };
  const { publish, record } = volumeCalls({ store, clock, deps: { ...deps, nodes } });
  const first = await publish();
  assert.equal(first["machine"], "0a0b0c0d");
  for (const other of ["ffffffff", undefined]) {
    machine = other;
    assert.deepEqual(await publish(), first);
  }
  assert.equal(asked, 1, "the cluster is asked for a new holder only");
  assert.equal(record().holders[0]!.machine, "0a0b0c0d");
});

Deno.test("publishVolume() notes the machines of all that write, and of readers only the first", async () => {
  const machinesOf = async (capability: PublishRequest["capability"], capabilities: string) => {
    const { store, deps, clock } = controller({ capabilities, blankEpoch: 0 });
    const nodes = { ...deps.nodes, machineOf: (id: string) => Promise.resolve(`0000000${id}`) };
    const { publish, record } = volumeCalls({ store, clock, deps: { ...deps, nodes } });
    for (const id of ["a", "b"]) await publish(id, { capability });
    return record().holders.map(({ machine }) => machine);
  };
  assert.deepEqual(await machinesOf(sharedBlock, "block/x"), ["0000000a", "0000000b"]);
  const reader = { access: "mount", filesystem: "xfs", mode: "multi-node-reader-only" } as const;
  assert.deepEqual(await machinesOf(reader, "xfs/n"), ["0000000a", undefined]);
});
