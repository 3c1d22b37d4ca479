import assert from "node:assert/strict";
import { epoch, nqn, volumeId } from "../../../tests/fakes/node_deps.ts";
import { givenUp, inUse } from "../../../tests/fakes/watched_map.ts";
import { LayerWatch } from "./layer_watch.ts";

const later = nqn.replace(epoch, "2-22222222");

Deno.test("a connection that the watch makes again while the volume is unstaged does not stay", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  node.offered = () => [nqn];
  node.after = (step) => {
    if (step !== "connect") return;
    node.mapper.maps.clear();
    node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
    node.table = [];
  };
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("a connection that the watch makes again while an unstage has the lock does not outlast it", async () => {
  const { node, locks, watch } = await inUse();
  givenUp(node);
  node.offered = () => [nqn];
  let release = () => {};
  node.after = (step) => {
    if (step !== "connect") return;
    release = locks.tryTake([volumeId], "an unstage")!;
    node.mapper.maps.clear();
    node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
    node.table = [];
  };
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
  const { node } = await inUse();
  givenUp(node);
  node.offered = () => [nqn];
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
  node.mapper.maps.clear();
  node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
  node.table = [];
  resolve();
  await node.clock.advance(0);
  assert.equal(node.device.connected, true);
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("a connection of an earlier epoch that the watch makes again during unstage and stage does not stay", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  node.offered = () => [nqn];
  node.after = (step) => {
    if (step !== "connect") return;
    node.mapper.maps.clear();
    node.setStagingState({ nqn: later });
    node.table = [];
  };
  await watch.check();
  assert.equal(node.device.connected, false);
});

Deno.test("a connection that the watch made again is kept when the volume is staged again meanwhile", async () => {
  const { node, locks, watch } = await inUse();
  givenUp(node);
  node.offered = () => [nqn];
  let release = () => {};
  node.after = (step) => {
    if (step !== "connect") return;
    release = locks.tryTake([volumeId], "an unstage and a stage")!;
    node.mapper.maps.clear();
  };
  await watch.check();
  release();
  await watch.check();
  assert.equal(node.device.connected, true);
});

Deno.test("a connection that is in use after the watch made it again is left alone", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  node.offered = () => [nqn];
  node.after = (step) => {
    if (step !== "connect") return;
    node.mapper.maps.clear();
    node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
    node.table = [];
    node.claimed = true;
  };
  await watch.check();
  node.claimed = false;
  await watch.check();
  assert.equal(node.device.connected, true);
});
