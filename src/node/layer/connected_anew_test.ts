import assert from "node:assert/strict";
import { epoch, type FakeNode, nqn, volumeId } from "../../../tests/fakes/node_deps.ts";
import { givenUp, inUse, type Watched } from "../../../tests/fakes/watched_map.ts";
import { LayerWatch } from "./layer_watch.ts";

const later = nqn.replace(epoch, "2-22222222");

/** A volume in use whose connection the kernel has given up, and which the router offers; a connection lets `meanwhile` happen. */
async function waiting(meanwhile: (node: FakeNode, locks: Watched["locks"]) => void = () => {}) {
  const watched = await inUse();
  const { node, locks } = watched;
  givenUp(node);
  node.offered = () => [nqn];
  node.after = (step) => {
    if (step === "connect") meanwhile(node, locks);
  };
  return watched;
}

/** What an unstage leaves that could not end the connection. */
function unstaged(node: FakeNode): void {
  node.mapper.maps.clear();
  node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
  node.table = [];
}

Deno.test("a connection that the watch makes again while the volume is unstaged does not stay", async () => {
  const { node, watch } = await waiting(unstaged);
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("a connection that the watch makes again while an unstage has the lock does not outlast it", async () => {
  let release = () => {};
  const { node, watch } = await waiting((node, locks) => {
    release = locks.tryTake([volumeId], "an unstage")!;
    unstaged(node);
  });
  await watch.check();
  await watch.check();
  assert.equal(node.device.connected, true, "the call has the lock");
  release();
  await watch.check();
  assert.equal(node.device.connected, false);
  const before = node.operations.length;
  await watch.check();
  assert.equal(node.operations.length, before, "it is told once");
});

Deno.test("a connection that is made too late for its check, and for an unstage, does not stay", async () => {
  const { node } = await waiting();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { connector } = node.deps;
  const connect: typeof connector.connect = async (request, context) => {
    await promise;
    return await connector.connect(request, { ...context, signal: new AbortController().signal });
  };
  const deps = { ...node.deps, connector: { ...connector, connect } };
  const watch = new LayerWatch({ deps, fencing: node.service.fencing, lock: { tryTake: () => () => {} } });
  const look = watch.check();
  await node.clock.advance(60_000);
  await look;
  unstaged(node);
  resolve();
  await node.clock.advance(0);
  assert.equal(node.device.connected, true);
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("a connection of an earlier epoch that the watch makes again during unstage and stage does not stay", async () => {
  const { node, watch } = await waiting((node) => {
    node.mapper.maps.clear();
    node.setStagingState({ nqn: later });
    node.table = [];
  });
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("a connection that the watch made again is kept when the volume is staged again meanwhile", async () => {
  let release = () => {};
  const { node, watch } = await waiting((node, locks) => {
    release = locks.tryTake([volumeId], "an unstage and a stage")!;
    node.mapper.maps.clear();
  });
  await watch.check();
  release();
  await watch.check();
  assert.equal(node.device.connected, true);
});

Deno.test("a connection that is in use after the watch made it again is left alone", async () => {
  const { node, watch } = await waiting((node) => {
    unstaged(node);
    node.claimed = true;
  });
  await watch.check();
  node.claimed = false;
  await watch.check();
  assert.equal(node.device.connected, true);
});
