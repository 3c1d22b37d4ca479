import assert from "node:assert/strict";
import { call, epoch, type FakeDevice, FakeNode, nqn, volumeId } from "../../../tests/fakes/node_deps.ts";
import { OrphanedConnections } from "./orphaned_connections.ts";

/** A connection that no state file knows of. */
function orphan(
  change: Partial<FakeDevice> = {},
  name = nqn,
): { node: FakeNode; orphans: OrphanedConnections } {
  const node = new FakeNode();
  node.devices.set(name, node.newDevice({ connected: true, ...change }));
  return { node, orphans: orphans(node) };
}

function orphans(node: FakeNode, free = true): OrphanedConnections {
  return new OrphanedConnections(node.deps, { tryTake: () => free ? () => {} : undefined });
}

Deno.test("look() drops a connection that nothing is known of and nobody uses", async () => {
  const { node, orphans } = orphan();
  await orphans.check(call());
  assert.deepEqual([node.operations, node.device.connected], [["disconnect"], false]);
});

Deno.test("look() passes over what has a state file, whatever that says", async () => {
  for (const text of ["{}", "{"]) {
    const { node, orphans } = orphan();
    node.paths.nodes.set("/state/volumes", { kind: "directory" });
    node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text });
    await orphans.check(call());
    assert.deepEqual([node.operations, node.reported], [[], []]);
  }
});

const uses: readonly [string, (node: FakeNode) => void][] = [
  ["mounted", (node) => node.addMount("7:3", "/somewhere")],
  ["bound", (node) => {
    node.addMount("0:6", "/bound", { filesystem: "devtmpfs", root: "/loop3" });
    node.paths.nodes.set("/bound", { kind: "block", deviceNumber: "7:3" });
  }],
  ["open", (node) => void (node.holder = { certain: true, description: "process 7 (qemu)" })],
  ["perhaps open", (node) => {
    node.sparesOpenDevices = true;
    node.holder = { certain: false, description: "perhaps process 1" };
  }],
  ["claimed", (node) => void (node.claimed = true)],
  ["made by another host", (node) => void node.connections.set(nqn, { hostNqn: "nqn.other" })],
  ["made with another host id", (node) => void node.connections.set(nqn, { hostId: "other" })],
  ["without a device", (node) => void (node.deps.connector.find = () => Promise.resolve(undefined))],
];

for (const [what, use] of uses) {
  Deno.test(`look() leaves a connection that is ${what} as it is, and says so once`, async () => {
    const { node, orphans } = orphan();
    use(node);
    for (let i = 0; i < 3; i++) await orphans.check(call());
    assert.deepEqual(node.operations, []);
    assert.deepEqual(node.reported, ["left an unknown connection alone"]);
  });
}

Deno.test("look() never drops what may be the legacy driver's", async () => {
  const { node, orphans } = orphan({}, nqn.slice(0, -epoch.length - 1));
  await orphans.check(call());
  assert.deepEqual([node.operations, node.reported.length], [[], 1]);
});

Deno.test("look() never drops what was connected while the driver runs", async () => {
  const node = new FakeNode();
  const watching = orphans(node);
  await watching.check(call());
  node.device.connected = true;
  await watching.check(call());
  assert.deepEqual([node.operations, node.reported.length], [[], 1]);
});

Deno.test("look() comes back to what was in use at the start", async () => {
  const { node, orphans } = orphan();
  node.claimed = true;
  await orphans.check(call());
  node.claimed = false;
  await orphans.check(call());
  assert.equal(node.device.connected, false);
});

Deno.test("look() leaves a volume alone that a call is changing, or has begun to", async () => {
  const { node } = orphan();
  await orphans(node, false).check(call());
  const begun = new OrphanedConnections(node.deps, {
    tryTake: () => {
      node.paths.nodes.set("/state/volumes", { kind: "directory" });
      node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text: "{}" });
      return () => {};
    },
  });
  await begun.check(call());
  assert.deepEqual(node.operations, []);
});
