import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  call,
  epoch,
  ext4,
  FakeNode,
  nqn,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { Deps as Kernel, host } from "../../../tests/support/kernel_connector.ts";
import { VolumeLocks } from "../../csi/server/call.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { FenceWatch } from "./fence_watch.ts";
import { Fencing } from "./fencing.ts";
import { RecentConnections } from "../connections/recent_connections.ts";

const later = nqn.replace(epoch, "2-22222222");
const intervalMs = 30_000;

interface Watched {
  readonly node: FakeNode;
  readonly locks: VolumeLocks;
  readonly watch: FenceWatch;
}

function watched(node: FakeNode): Watched {
  const locks = new VolumeLocks();
  const watch = new FenceWatch({
    deps: node.deps,
    fencing: node.service.fencing,
    lock: { tryTake: (keys) => locks.tryTake(keys, "watch") },
    random: new SeededRandom(),
    intervalMs,
  });
  return { node, locks, watch };
}

/** A staged volume whose connection has gone down. */
async function down(offered: FakeNode["offered"], capability: Capability = ext4): Promise<Watched> {
  const node = new FakeNode();
  await node.stage({ capability });
  node.connections.set(nqn, { state: "connecting" });
  node.offered = offered;
  node.operations.length = 0;
  return watched(node);
}

function unreachable(): never {
  throw new VolumeError("unavailable", "no route");
}

async function reads({ node, watch }: Watched, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await watch.check();
    await node.clock.advance(intervalMs);
  }
}

for (const capability of [ext4, block]) {
  Deno.test(`check() disconnects a fenced ${capability.access} volume, then unmounts it, and keeps its state`, async () => {
    const { node, watch, locks } = await down(() => [later], capability);
    await watch.check();
    assert.ok(node.operations.indexOf("forceDisconnect") < node.operations.indexOf("unmount"));
    assert.deepEqual([node.table, node.device.connected, node.stagingState?.staged, locks.size], [
      [],
      false,
      false,
      0,
    ]);
    assert.equal(node.paths.nodes.has(`${stagingPath}/device`), false);
    await node.unstage();
    assert.equal(node.stagingState, undefined);
  });
}

Deno.test("check() reports the connections of staged volumes only", async () => {
  const loaded = await down(unreachable);
  const { node, watch } = loaded;
  const states = () => node.events.connections.get(volumeId)?.map(({ state }) => state);
  await watch.check();
  assert.deepEqual(states(), ["connecting"]);
  node.connections.set(nqn, { state: "live" });
  await watch.check();
  assert.deepEqual(states(), ["live"]);
  node.events.connections.clear();
  node.setStagingState({ staged: false });
  await watch.check();
  assert.equal(states(), undefined);
});

Deno.test("check() disconnects a fenced volume that is published, and leaves its mounts to the kubelet", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.publish();
  node.connections.set(nqn, { state: "connecting" });
  node.offered = () => [later];
  await watched(node).watch.check();
  assert.deepEqual([node.table.length, node.device.connected, node.stagingState?.staged], [2, false, true]);
  assert.ok(node.reported.includes("a fenced volume stays mounted until it is unpublished"));
  await assert.rejects(
    node.publish({ targetPath: `${targetPath}-2` }),
    refusal("precondition"),
  );
  await node.unpublish();
  await node.unstage();
  assert.deepEqual([node.table, node.stagingState], [[], undefined]);
});

const timeouts: readonly [string, FakeNode["offered"]][] = [
  ["unreachable", unreachable],
  ["offering it, though it is not connected yet", () => [nqn]],
  ["up without its disks, as while a pool waits for its password", () => []],
  ["up with the disks of another pool only", () => [nqn.replace("pvc-1", "pvc-2")]],
];

for (const [what, offered] of timeouts) {
  Deno.test(`check() leaves a volume whose target is ${what} as it is, for hours`, async () => {
    const all = await down(offered);
    await reads(all, 240);
    assert.deepEqual(all.node.operations, []);
    assert.equal(all.node.reported.length, 1, "one line a change");
  });
}

Deno.test("a volume in use whose pool is locked for an hour is unchanged when the pool is back", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.publish();
  const [table, state] = [node.table, node.stagingState];
  node.connections.set(nqn, { state: "connecting" });
  node.offered = () => [nqn.replace("pvc-1", "pvc-of-another-pool")];
  node.operations.length = 0;
  const { watch } = watched(node);
  for (let atMs = 0; atMs < 3_600_000; atMs += intervalMs) {
    await watch.check();
    await node.clock.advance(intervalMs);
  }
  node.connections.clear();
  await watch.check();
  assert.deepEqual([node.operations, node.table, node.stagingState], [[], table, state]);
  await node.unpublish();
  await node.unstage();
  assert.equal(node.operations.includes("forceDisconnect"), false);
  assert.deepEqual([node.table, node.device.connected, node.stagingState], [[], false, undefined]);
});

Deno.test("check() of a live volume asks no target, and changes, writes and logs nothing", async () => {
  const node = new FakeNode();
  await node.stage();
  node.operations.length = 0;
  node.offered = () => assert.fail("it was asked");
  await reads(watched(node), 10);
  assert.deepEqual([node.operations, node.reported], [[], []]);
});

Deno.test("check() lets the settle time of an unstage run on, over restarts of the driver, and disconnects nothing", async () => {
  const all = await down(() => []);
  const { node } = all;
  await assert.rejects(node.unstage(), refusal("unavailable"));
  await node.clock.advance(intervalMs);
  for (let at = 0; at < 8; at++) await reads(watched(node), 1); // Each driver process begins with an empty memory.
  assert.equal(node.stagingState?.missed?.missedForMs, 8 * intervalMs);
  await reads(all, 60);
  assert.equal(node.stagingState?.missed, undefined, "nobody asks any more");
  assert.equal(node.device.connected, true);
});

Deno.test("check() starts the settle time again when the target was unreachable, offered the volume, or the connection was live", async () => {
  const breaks: readonly ((node: FakeNode) => void)[] = [
    (node) => void (node.offered = unreachable),
    (node) => void (node.offered = () => [nqn]),
    (node) => node.connections.clear(),
  ];
  for (const interrupt of breaks) {
    const all = await down(() => []);
    await assert.rejects(all.node.unstage(), refusal("unavailable"));
    await reads(all, 4);
    assert.notEqual(all.node.stagingState?.missed, undefined);
    interrupt(all.node);
    await reads(all, 1);
    assert.equal(all.node.stagingState?.missed, undefined);
    assert.equal(all.node.device.connected, true);
  }
});

Deno.test("check() changes and forgets nothing while a call holds the volume's lock", async () => {
  const all = await down(() => []);
  const release = all.locks.take([volumeId], "NodeStageVolume");
  for (let at = 0; at < 21; at++) {
    await all.node.service.releaseWhileBusy(volumeId, call());
    await reads(all, 2);
  }
  assert.deepEqual(all.node.operations, []);
  await all.node.service.releaseWhileBusy(volumeId, call());
  assert.deepEqual(all.node.operations, ["forceDisconnect"], "only an unstage cuts off past a lock");
  release();
});

Deno.test("check() disconnects a fenced volume whose resize hangs in a call that holds the lock", async () => {
  const { node, watch, locks } = await down(() => [later]);
  const hang = Promise.withResolvers<void>();
  node.deps.filesystems.grow = () => hang.promise;
  // The kernel ends requests that wait for a connection when the connection is gone.
  node.after = (operation) => {
    if (operation === "forceDisconnect") hang.reject(new VolumeError("unavailable", "Input/output error"));
  };
  const release = locks.take([volumeId], "NodeExpandVolume");
  const range = { requiredBytes: 0n, limitBytes: 0n };
  const expanded = node.service.expand({ volumeId, volumePath: stagingPath, range }, call()).finally(release);
  const refused = assert.rejects(expanded, refusal("unavailable", /Input\/output/));
  await node.clock.advance(0);
  node.operations.length = 0;
  await watch.check();
  assert.deepEqual(node.operations, ["forceDisconnect"]);
  await refused;
  assert.equal(locks.size, 0);
  await node.unstage();
  assert.deepEqual([node.table, node.stagingState], [[], undefined]);
});

Deno.test("check() does not mistake another epoch's connection for the one that it read", async () => {
  const { node, watch } = await down(() => {
    node.setStagingState({ nqn: later, epoch: "2-22222222" });
    return [later];
  });
  await watch.check();
  assert.deepEqual(node.operations, []);
});

Deno.test("check() does not repeat work that still hangs since an earlier check", async () => {
  const { node, watch } = await down(() => []);
  let begun = 0;
  node.deps.connector.connections = () => {
    begun++;
    return new Promise(() => {});
  };
  for (let i = 0; i < 3; i++) {
    const reading = watch.check();
    await node.clock.advance(60_000);
    await reading;
  }
  assert.equal(begun, 1);
});

Deno.test("check() asks a target once for all its volumes, and not again while it hangs", async () => {
  const node = new FakeNode();
  await node.stage();
  const text = node.paths.nodes.get(`/state/volumes/${volumeId}.json`)!.text!;
  for (let i = 2; i < 40; i++) {
    const id = `pvc-${i}`;
    const name = nqn.replace("pvc-1", id);
    node.paths.nodes.set(`/state/volumes/${id}.json`, { kind: "file", text: text.replaceAll("pvc-1", id) });
    node.devices.set(name, node.newDevice({ connected: true }));
    node.connections.set(name, { state: "connecting" });
  }
  let asked = 0;
  node.offered = () => {
    asked++;
    return new Promise(() => {});
  };
  const { watch } = watched(node);
  for (let i = 0; i < 3; i++) {
    const reading = watch.check();
    await node.clock.advance(10_000);
    await reading;
  }
  assert.equal(asked, 1);
  assert.equal(node.clock.waiting, 0);
});

Deno.test("check() lets a volume that hangs delay no other, and checks it again when it is free", async () => {
  const node = new FakeNode();
  await node.stage();
  node.connections.set(nqn, { state: "connecting" });
  node.offered = () => [later];
  const { unmount } = node.deps.mounts;
  const hang = Promise.withResolvers<void>();
  node.deps.mounts.unmount = () => hang.promise;
  const all = watched(node);
  const reading = all.watch.check();
  await node.clock.advance(60_000);
  await reading;
  assert.equal(all.locks.size > 0, true, "what hangs keeps the lock");
  await all.watch.check();
  assert.equal(node.operations.filter((operation) => operation === "forceDisconnect").length, 1);
  node.deps.mounts.unmount = unmount;
  hang.resolve();
  await node.clock.advance(0);
  assert.equal(all.locks.size, 0);
  assert.equal(node.reported.filter((message) => message === "cannot check for fenced volumes").length, 1);
});

Deno.test("check() skips a damaged state file", async () => {
  const { node, watch } = await down(() => [later]);
  node.paths.nodes.set("/state/volumes/pvc-0.json", { kind: "file", text: "{" });
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("check() does not fail when nothing can be read, and logs that once", async () => {
  const node = new FakeNode();
  node.deps.paths.list = () => Promise.reject(new Error("no disk"));
  await reads(watched(node), 3);
  assert.deepEqual(node.reported, ["cannot check for fenced volumes"]);
});

/** How many files of the kernel one check reads on a node where so many volumes are staged and well. */
async function kernelReads(count: number): Promise<number> {
  const kernel = new Kernel();
  const node = new FakeNode(kernel.clock);
  await node.stage();
  const state = node.paths.nodes.get(`/state/volumes/${volumeId}.json`)!.text!;
  for (let at = 1; at <= count; at++) {
    const [id, own] = [`pvc-${at}`, nqn.replace(volumeId, `pvc-${at}`)];
    kernel.add({ nqn: own, address: "10.0.0.1", ...host });
    const text = state.replaceAll(volumeId, id);
    node.paths.nodes.set(`/state/volumes/${id}.json`, { kind: "file", text });
  }
  let files = 0;
  const { readText } = kernel.files;
  kernel.files.readText = (path) => {
    files++;
    return readText.call(kernel.files, path);
  };
  const deps = { ...node.deps, connector: kernel.connector, maps: undefined };
  const lock = { tryTake: () => () => {} };
  const fencing = new Fencing(deps);
  await new FenceWatch({ deps, fencing, lock, random: new SeededRandom(), intervalMs }).check();
  return files;
}

Deno.test("check() of volumes that are well reads as much of the kernel for each, however many there are", async () => {
  assert.equal(await kernelReads(50), 5 * await kernelReads(10));
});

Deno.test("check() reads what is not live again, and judges by that", async () => {
  const asked: unknown[] = [];
  const { node, watch } = await down((at) => {
    asked.push(at);
    return [later];
  });
  const { allConnections } = node.deps.connector;
  for (const isEmpty of [false, true]) {
    node.connections.set(nqn, { state: "connecting" });
    const before = isEmpty ? new Map() : await allConnections(call());
    node.deps.connector.allConnections = () => Promise.resolve(before);
    node.connections.delete(nqn); // It is live by now.
    await watch.check();
    assert.deepEqual([asked, node.operations], [[], []]);
  }
  node.connections.set(nqn, { state: "connecting" }); // It was not there when all were read, and is down.
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("check() finds a connection that went down during a check of more than a second, and else at the next one", async () => {
  const node = new FakeNode();
  await node.stage();
  node.offered = () => [later];
  const { allConnections } = node.deps.connector;
  const recent = new RecentConnections(node.deps);
  const stateOf = async () => (await recent.to(nqn)).map(({ state }) => state);
  assert.deepEqual(await stateOf(), ["live"]);
  node.connections.set(nqn, { state: "connecting" });
  assert.deepEqual(await stateOf(), ["live"]);
  await node.clock.advance(1_000);
  assert.deepEqual(await stateOf(), ["connecting"]);

  node.connections.delete(nqn);
  const live = await allConnections(call());
  node.connections.set(nqn, { state: "connecting" });
  node.deps.connector.allConnections = () => Promise.resolve(live);
  const { watch } = watched(node);
  await watch.check();
  assert.equal(node.device.connected, true);
  node.deps.connector.allConnections = allConnections;
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("start() reads once and then at every interval, and stop() ends it in the middle of a read", async () => {
  const all = await down(() => new Promise(() => {}));
  const { node, watch } = all;
  let loaded = 0;
  node.deps.connector.connected = () => {
    loaded++;
    return Promise.resolve([]);
  };
  watch.start();
  await node.clock.advance(10_000);
  assert.equal(loaded, 1);
  for (let i = 2; i < 6; i++) {
    await node.clock.advance(intervalMs * 1.1);
    assert.equal(loaded, i);
  }
  node.deps.connector.connections = () => new Promise(() => {});
  await node.clock.advance(intervalMs * 1.1);
  await watch.stop();
  assert.equal(node.clock.waiting, 0);
});

Deno.test("stop() without start() resolves", async () => {
  await watched(new FakeNode()).watch.stop();
});
