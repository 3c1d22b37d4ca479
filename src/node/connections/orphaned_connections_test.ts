import assert from "node:assert/strict";
import { call, epoch, type FakeDevice, FakeNode, nqn, volumeId } from "../../../tests/fakes/node_world.ts";
import { Strays } from "./orphaned_connections.ts";

/** A connection that no state file knows of. */
function stray(change: Partial<FakeDevice> = {}, name = nqn): { node: FakeNode; strays: Strays } {
  const node = new FakeNode();
  node.devices.set(name, node.newDevice({ connected: true, ...change }));
  return { node, strays: strays(node) };
}

function strays(node: FakeNode, free = true): Strays {
  return new Strays(node.world, { tryTake: () => free ? () => {} : undefined });
}

Deno.test("look() drops a connection that nothing is known of and nobody uses", async () => {
  const { node, strays } = stray();
  await strays.look(call());
  assert.deepEqual([node.operations, node.device.connected], [["disconnect"], false]);
});

Deno.test("look() passes over what has a state file, whatever that says", async () => {
  for (const text of ["{}", "{"]) {
    const { node, strays } = stray();
    node.paths.nodes.set("/state/volumes", { kind: "directory" });
    node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text });
    await strays.look(call());
    assert.deepEqual([node.operations, node.told], [[], []]);
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
  ["without a device", (node) => void (node.world.connector.find = () => Promise.resolve(undefined))],
];

for (const [what, use] of uses) {
  Deno.test(`look() leaves a connection that is ${what} as it is, and says so once`, async () => {
    const { node, strays } = stray();
    use(node);
    for (let i = 0; i < 3; i++) await strays.look(call());
    assert.deepEqual(node.operations, []);
    assert.deepEqual(node.told, ["a connection that nothing is known of is left as it is"]);
  });
}

Deno.test("look() never drops what may be the earlier driver's", async () => {
  const { node, strays } = stray({}, nqn.slice(0, -epoch.length - 1));
  await strays.look(call());
  assert.deepEqual([node.operations, node.told.length], [[], 1]);
});

Deno.test("look() never drops what was connected while the driver runs", async () => {
  const node = new FakeNode();
  const watching = strays(node);
  await watching.look(call());
  node.device.connected = true;
  await watching.look(call());
  assert.deepEqual([node.operations, node.told.length], [[], 1]);
});

Deno.test("look() comes back to what was in use at the start", async () => {
  const { node, strays } = stray();
  node.claimed = true;
  await strays.look(call());
  node.claimed = false;
  await strays.look(call());
  assert.equal(node.device.connected, false);
});

Deno.test("look() leaves a volume alone that a call is changing, or has begun to", async () => {
  const { node } = stray();
  await strays(node, false).look(call());
  const begun = new Strays(node.world, {
    tryTake: () => {
      node.paths.nodes.set("/state/volumes", { kind: "directory" });
      node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text: "{}" });
      return () => {};
    },
  });
  await begun.look(call());
  assert.deepEqual(node.operations, []);
});
