import { refusal } from "../../../tests/fakes/refusal.ts";
import { aStagingState, type FlatState } from "../../../tests/fakes/staging_state.ts";
import { formatStagingState } from "../../volume/model/staging/state_file.ts";
import assert from "node:assert/strict";
import { call, FakeNode, injected, nqn, volumeId } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { TargetAddress } from "../../volume/ports/node_ports.ts";

const refuse = () => {
  throw new VolumeError("unavailable", "Cannot ask: refused");
};

async function reasons(node: FakeNode): Promise<string[]> {
  return (await node.service.storageHealth(call())).map(({ reason }) => reason);
}

async function staged(addresses = "10.0.0.1"): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage({}, { nvmeAddress: addresses });
  return node;
}

/** Records which targets are asked. */
function noteAsked(node: FakeNode): TargetAddress[] {
  const asked: TargetAddress[] = [];
  const { offered } = node.deps.connector;
  node.deps.connector.offered = (target, context) => {
    asked.push(target);
    return offered(target, context);
  };
  return asked;
}

Deno.test("storageHealth() asks no target while the node has no volumes, and leaves no file", async () => {
  const node = new FakeNode();
  const asked = noteAsked(node);
  assert.deepEqual(await reasons(node), []);
  assert.deepEqual(asked, []);
  assert.equal(node.paths.nodes.has("/state/writable"), false);
});

Deno.test("storageHealth() asks each address in use once, and not again for a while", async () => {
  const node = await staged("10.0.0.1,10.0.0.2");
  const other = {
    ...node.stagingState!,
    volumeId: "pvc-2",
    namespaceBytes: 5n,
    addresses: ["10.0.0.2"],
    device: undefined,
  } as FlatState;
  node.paths.nodes.set("/state/volumes/pvc-2.json", {
    kind: "file",
    text: formatStagingState(aStagingState(other)),
  });
  const asked = noteAsked(node);
  for (let i = 0; i < 20; i++) assert.deepEqual(await reasons(node), []);
  assert.deepEqual(asked, [{ address: "10.0.0.1", port: 4420 }, { address: "10.0.0.2", port: 4420 }]);
  await node.clock.advance(10_000);
  await reasons(node);
  assert.equal(asked.length, 4);
});

Deno.test("storageHealth() reports a router that does not answer, and whether connections to it are live", async () => {
  const node = await staged();
  node.offered = refuse;
  assert.deepEqual(await reasons(node), ["ExportsNotListed"]);
  await node.clock.advance(10_000);
  node.connections.set(nqn, { state: "connecting" });
  assert.deepEqual(await reasons(node), ["RouterUnreachable"]);
  await node.clock.advance(10_000);
  node.device.connected = false;
  assert.deepEqual(await reasons(node), ["RouterUnreachable"]);
});

Deno.test("storageHealth() asks nothing about an unfinished file system whose volume is not here", async () => {
  const node = new FakeNode();
  node.before = (operation) => {
    if (operation === "format") throw injected;
  };
  await assert.rejects(node.stage(), (error) => error === injected);
  node.before = () => {};
  await node.unstage();
  assert.equal(node.known?.filesystem, "started");
  node.offered = refuse;
  assert.deepEqual(await reasons(node), []);
});

Deno.test("storageHealth() reports a router that never answers, in time", async () => {
  const node = await staged();
  node.device.connected = false;
  node.deps.connector.offered = () => new Promise(() => {});
  const late = reasons(node);
  await node.clock.advance(4_000);
  assert.deepEqual(await late, ["RouterUnreachable"]);
});

Deno.test("storageHealth() reports one silent address of two", async () => {
  const node = await staged("10.0.0.1,10.0.0.2");
  node.deps.connector.offered = ({ address }) => address === "10.0.0.2" ? refuse() : Promise.resolve([nqn]);
  assert.deepEqual(await reasons(node), ["AddressUnreachable"]);
});

Deno.test("storageHealth() reports that nothing can be connected", async () => {
  const node = new FakeNode();
  node.obstacle = "there is no transport";
  const [problem] = await node.service.storageHealth(call());
  assert.deepEqual([problem?.status, problem?.reason], ["STORAGE_UNREACHABLE", "TransportMissing"]);
});

Deno.test("storageHealth() reports a state folder that takes no writes, or never answers", async () => {
  const node = new FakeNode();
  const { writeFile } = node.deps.paths;
  node.deps.paths.writeFile = () => Promise.reject(new Error("Read-only file system (os error 30)"));
  const [problem] = await node.service.storageHealth(call());
  assert.equal(problem?.reason, "StateNotWritable");
  assert.match(problem.message, /Read-only file system/);
  await node.clock.advance(10_000);
  node.deps.paths.writeFile = () => new Promise(() => {});
  const late = reasons(node);
  await node.clock.advance(4_000);
  assert.deepEqual(await late, ["StateNotWritable"]);
  node.deps.paths.writeFile = writeFile;
});

Deno.test("storageHealth() goes on when a state file is damaged", async () => {
  const node = await staged();
  node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text: "{" });
  assert.deepEqual(await reasons(node), []);
});

Deno.test("storageHealth() reads once for all callers, and lets one leave without the others", async () => {
  const node = await staged();
  const asked = noteAsked(node);
  const release = new AbortController();
  const reason = new VolumeError("cancelled", "gone");
  const left = assert.rejects(node.service.storageHealth(call(release.signal)), (error) => error === reason);
  const stayed = reasons(node);
  release.abort(reason);
  await left;
  assert.deepEqual([await stayed, asked.length], [[], 1]);
});

Deno.test("storageHealth() throws deadline for a read that never ends, and begins a new one", async () => {
  const node = await staged();
  const { obstacle } = node.deps.connector;
  node.deps.connector.obstacle = () => new Promise(() => {});
  const rejected = assert.rejects(reasons(node), refusal("deadline"));
  await node.clock.advance(10_000);
  await rejected;
  node.deps.connector.obstacle = obstacle;
  assert.deepEqual(await reasons(node), []);
});
