import assert from "node:assert/strict";
import {
  aPublish,
  sharedBlock,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { hostIdentityOf } from "../../volume/model/host/identity.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { publishVolume } from "./publish.ts";
import { maxCommentBytes, nodeDigest } from "../../volume/model/record.ts";
import type { DetachedNode } from "../../volume/ports/cluster_ports.ts";
import { unpublishVolume } from "./unpublish.ts";
import { KnownVolumes } from "../known_volumes.ts";
import type { ControllerSettings } from "../deps.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };
const host = (nodeId: string) => hostIdentityOf(nodeId).hostNqn;
const foreign = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555";

/** A controller on a router with a block volume that the nodes a and b hold. */
function controller(
  allowHost: ControllerSettings["allowHost"],
  disk: Partial<StoredVolume> = {},
  known: Partial<ControllerSettings> = {},
) {
  const able = { allowHost, identity: "kept", endsSessionsAtOnce: true, unexportGraceMs: 0 } as const;
  const { store, deps, notes, events, clock } = testController({ ...able, ...known });
  const holders = ["a", "b"].map((nodeId) => aHolder(nodeId, { mode: "multi-node-multi-writer" }));
  store.put(aDisk(aRecord({ capabilities: "block/x", blankEpoch: 0, epoch, holders }), disk));
  return {
    ...{ store, deps, notes, events, clock },
    disk: () => store.disks.get("pvc-1")!,
    unpublish: (nodeId: string) => unpublishVolume(deps, "pvc-1", nodeId, context),
    publish: (nodeId: string) =>
      publishVolume(deps, "pvc-1", aPublish(nodeId, { capability: sharedBlock }), testParameters, context),
    /** The controller starts with another profile of the router. */
    restart: (profile: Partial<ControllerSettings>) =>
      Object.assign(deps, { settings: { ...deps.settings, ...profile }, known: new KnownVolumes(true) }),
  };
}

const detachingNode = { kind: "leaver-unfenced", volumeId: "pvc-1", nodeId: "a", remaining: ["b"] } as const;

Deno.test("a node that leaves is shut out where the router goes by a list: in one command, under the same NQN", async () => {
  const { store, notes, events, disk, unpublish } = controller("list");
  const before = disk();
  await unpublish("a");
  assert.deepEqual(store.calls.map(({ method }) => method), ["view", "change"]);
  assert.deepEqual([disk().exported, disk().exportNqn, disk().allowedHosts], [true, before.exportNqn, [
    host("b"),
  ]]);
  assert.deepEqual(store.bounces, ["pvc-1"], "whoever is connected has to come again");
  assert.deepEqual(notes, []);
  assert.deepEqual(events, [{ kind: "fenced", volumeId: "pvc-1", nodeIds: ["a"], remaining: ["b"] }]);
});

for (const allowHost of ["single", "ignored", undefined] as const) {
  Deno.test(`a node that leaves is reported as not fenced where the router's list is: ${allowHost}`, async () => {
    const { store, notes, events, disk, unpublish } = controller(allowHost);
    await unpublish("a");
    assert.deepEqual([disk().exported, disk().allowedHosts, store.bounces], [true, undefined, []]);
    assert.match(notes.join(), /the node that left is not fenced/);
    assert.deepEqual(events, [detachingNode]);
  });
}

const unable = [{ identity: "new-per-export" }, { identity: undefined }, {
  endsSessionsAtOnce: false,
}] as const;

for (const known of unable) {
  Deno.test(`an export in use is not toggled where the router has ${Deno.inspect(known)}`, async () => {
    const { store, events, disk, unpublish } = controller("list", {}, known);
    await unpublish("a");
    assert.deepEqual([disk().exported, disk().allowedHosts, store.bounces], [true, undefined, []]);
    assert.deepEqual(events, [detachingNode]);
  });
}

Deno.test("a list that a person made is left alone, and the detaching node reported", async () => {
  const { store, notes, disk, unpublish } = controller("list", { allowedHosts: [foreign] });
  await unpublish("a");
  assert.deepEqual([disk().allowedHosts, store.bounces], [[foreign], []]);
  assert.match(notes.join(), /not fenced/);
});

Deno.test("the other holder is never left without its export, also when the router stopped half-way", async () => {
  const { disk, unpublish } = controller("list", { exported: false, allowedHosts: [host("b")] });
  await unpublish("a");
  assert.deepEqual([disk().exported, disk().allowedHosts], [true, [host("b")]]);
});

Deno.test("a node that leaves is not answered OK while the list still has it", async () => {
  const { store, disk, unpublish } = controller("list");
  for (const mishap of [{ runs: false }, { refusal: "failure: no" }]) {
    store.mishap("change", mishap);
    await assert.rejects(unpublish("a"), refusal("unavailable"));
  }
  await unpublish("a");
  assert.deepEqual(disk().allowedHosts, [host("b")]);
});

Deno.test("a node that leaves is reported when the router keeps no list in spite of what is known of it", async () => {
  const { store, events, unpublish } = controller("list");
  store.mishap("change", { after: () => store.edit("pvc-1", { allowedHosts: [] }) });
  await unpublish("a");
  assert.deepEqual(events, [detachingNode]);
});

Deno.test("a node that leaves is not answered OK while the other one is without its export", async () => {
  const { store, unpublish } = controller("list");
  store.mishap("change", { after: () => store.edit("pvc-1", { exported: false }) });
  await assert.rejects(unpublish("a"), refusal("unavailable"));
});

Deno.test("a node that joins after one has left gets in, and the one that left does not", async () => {
  const { store, disk, unpublish, publish } = controller("list");
  await unpublish("a");
  await publish("b");
  assert.deepEqual(disk().allowedHosts, [host("b")]);
  await publish("c");
  assert.deepEqual(disk().allowedHosts, [host("b"), host("c")]);
  await unpublish("b");
  assert.deepEqual(disk().allowedHosts, [host("c")]);
  assert.equal(store.bounces.length, 2);
});

Deno.test("a list ends with its epoch: the next holder is not kept out by it", async () => {
  const { disk, unpublish, publish } = controller("list");
  await unpublish("a");
  await unpublish("b");
  assert.deepEqual([disk().exported, disk().allowedHosts], [false, []]);
  await publish("a");
  assert.deepEqual([disk().exported, disk().allowedHosts], [true, []]);
});

for (const profile of [...unable, { allowHost: undefined }] as const) {
  Deno.test(`a list ends with its epoch, also where the router has ${Deno.inspect(profile)} since it was made`, async () => {
    const { store, disk, unpublish, publish, restart } = controller("list");
    await unpublish("a");
    await publish("c");
    restart(profile);
    await unpublish("b");
    assert.equal(disk().allowedHosts?.includes(host("b")), false);
    assert.equal(store.bounces.length, 1);
    await unpublish("c");
    await publish("d");
    assert.deepEqual([disk().exported, disk().allowedHosts], [true, []]);
  });
}

Deno.test("a node that was only struck off the list keeps a third one out, also where the router can shut out again", async () => {
  const { deps, disk, unpublish, publish, restart } = controller("list");
  await unpublish("a");
  await publish("c");
  restart({ allowHost: undefined });
  await unpublish("b");
  restart({ allowHost: "list" });
  await assert.rejects(publish("d"), refusal("published-elsewhere"));
  Object.assign(deps, { detachedNodes: { reasonAgainst: () => Promise.resolve(undefined) } });
  await publish("d");
  assert.deepEqual(disk().allowedHosts, [host("c"), host("d")]);
});

Deno.test("a person's list outlives the epoch", async () => {
  const { disk, unpublish } = controller("list", { allowedHosts: [foreign] });
  await unpublish("");
  assert.deepEqual([disk().exported, disk().allowedHosts], [false, [foreign]]);
});

Deno.test("a node that left is noted by its id alone where the record has no more room, and is kept in mind", async () => {
  const { store, disk, unpublish, publish } = controller(undefined);
  const { comment } = disk();
  store.put({ ...disk(), comment: comment + "n".repeat(maxCommentBytes - comment.length) });
  await unpublish("a");
  assert.match(disk().comment, / u=ca978112 /);
  await assert.rejects(publish("c"), refusal("published-elsewhere"));
});

Deno.test("a third node gets in when the one that left is known to have given the volume up, now or later", async () => {
  const { store, deps, publish, disk, unpublish } = controller(undefined);
  const asked: DetachedNode[] = [];
  let reason: string | undefined;
  Object.assign(deps, {
    detachedNodes: { reasonAgainst: (node: DetachedNode) => (asked.push(node), Promise.resolve(reason)) },
  });
  await unpublish("a");
  await publish("c");
  assert.deepEqual(asked, [{
    volumeId: "pvc-1",
    nodeDigest: nodeDigest("a"),
    sinceSeconds: aHolder("a").sinceSeconds,
  }]);
  reason = "its kubelet is away";
  await unpublish("b");
  await assert.rejects(publish("a"), refusal("published-elsewhere", /its kubelet is away/));
  reason = undefined;
  const { length } = store.calls;
  await publish("a");
  assert.deepEqual(store.calls.slice(length).map(({ method }) => method), ["view", "change"]);
  assert.doesNotMatch(disk().comment, / u=/);
});

Deno.test("a node that was shut out by the router's list keeps nobody out", async () => {
  const { unpublish, publish, disk } = controller("list");
  await unpublish("a");
  await publish("c");
  assert.deepEqual(disk().allowedHosts, [host("b"), host("c")]);
});

Deno.test("a node that the router's list was to shut out, and did not, keeps a third one out", async () => {
  const { store, unpublish, publish } = controller("list");
  store.mishap("change", { after: () => store.edit("pvc-1", { allowedHosts: [] }) });
  await unpublish("a");
  await assert.rejects(publish("c"), refusal("published-elsewhere"));
});

Deno.test("a list shuts nobody out where sessions outlast a toggle: a person may have set it", async () => {
  const { unpublish, publish } = controller("list", { allowedHosts: [host("b")] }, {
    endsSessionsAtOnce: false,
  });
  await unpublish("a");
  await assert.rejects(publish("c"), refusal("published-elsewhere"));
});

Deno.test("a third node is kept out while one that left may still write, until that comes back or the epoch ends", async () => {
  const { disk, unpublish, publish } = controller(undefined);
  await unpublish("a");
  const keptOut = refusal("published-elsewhere", /third node.*node=b requested=c.*node=b gives it up/);
  await assert.rejects(publish("c"), keptOut);
  await publish("a");
  await unpublish("a");
  await assert.rejects(publish("c"), keptOut);
  const before = disk().exportNqn;
  await unpublish("b");
  await publish("c");
  assert.notEqual(disk().exportNqn, before);
  await publish("b");
  assert.equal(disk().exported, true, "a new epoch knows of none that left");
});

Deno.test("a machine that cannot be told does not come back in the place of one that left and may still write", async () => {
  const { deps, disk, unpublish, publish } = controller(undefined);
  let machine: string | undefined = "0a0b0c0d";
  Object.assign(deps, {
    nodes: { isKnown: () => Promise.resolve(true), machineOf: () => Promise.resolve(machine) },
  });
  await unpublish("a");
  await publish("a");
  await unpublish("a");
  assert.match(disk().comment, / u=ca978112@[0-9a-z]+\/0a0b0c0d /);
  for (machine of [undefined, "ffffffff"]) {
    await assert.rejects(publish("a"), refusal("published-elsewhere", /could not be shut out/), machine);
  }
  machine = "0a0b0c0d";
  await publish("a");
  assert.doesNotMatch(disk().comment, / u=/);
});

Deno.test("that a kubelet says it has given a volume up shortens no grace", async () => {
  const { store, deps, clock } = testController({ unexportGraceMs: 10_000 });
  Object.assign(deps, { detachedNodes: { reasonAgainst: () => Promise.resolve(undefined) } });
  const holders = ["a", "b"].map((nodeId) => aHolder(nodeId, { mode: "multi-node-multi-writer" }));
  store.put(aDisk(aRecord({ capabilities: "block/x", blankEpoch: 0, epoch, holders })));
  for (const nodeId of ["a", "b"]) await unpublishVolume(deps, "pvc-1", nodeId, context);
  const soon = testContext({ deadlineMs: clock.now() + 9_000 });
  const publish = publishVolume(
    deps,
    "pvc-1",
    aPublish("c", { capability: sharedBlock }),
    testParameters,
    soon,
  );
  await assert.rejects(publish, refusal("unavailable", /withdrawn only a moment ago/));
});
