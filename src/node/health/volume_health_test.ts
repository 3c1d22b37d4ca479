import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { block, call, FakeNode, nqn, targetPath, volumeId } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Capability } from "../../volume/model/capabilities.ts";

async function published(capability?: Capability): Promise<FakeNode> {
  const node = new FakeNode();
  const change = capability === undefined ? {} : { capability };
  await node.stage(change);
  await node.publish(change);
  node.operations.length = 0;
  return node;
}

async function reasons(node: FakeNode): Promise<string[]> {
  const { id, problems } = await node.service.volumeHealth(volumeId, call());
  assert.equal(id, volumeId);
  return problems.map(({ reason }) => reason);
}

for (const capability of [undefined, block]) {
  const kind = capability?.access ?? "mount";

  Deno.test(`volumeHealth() finds nothing wrong with a published ${kind} volume, and changes nothing`, async () => {
    const node = await published(capability);
    assert.deepEqual(await reasons(node), []);
    assert.deepEqual(node.operations.filter((operation) => operation !== "stats"), []);
    assert.deepEqual(node.events.connections.get(volumeId)?.map(({ state }) => state), ["live"]);
    assert.deepEqual(node.events.health.get(volumeId), []);
  });

  Deno.test(`volumeHealth() reports what happened to a ${kind} volume`, async () => {
    const statusEvents: readonly [(node: FakeNode) => void, readonly string[]][] = [
      [(node) => node.device.connected = false, ["NotConnected"]],
      [(node) => node.connections.set(nqn, { state: "connecting" }), ["ConnectionLost"]],
      [(node) => node.device.uniqueId = "another", []], // The unique id was unknown when the volume was staged.
      [(node) => node.device.nsid = 2, ["DeviceMismatch"]],
      [(node) => node.layers = ["/dev/dm-0"], ["UsedByNode"]],
      [(node) => node.device.sizeBytes -= 1n, ["DeviceTooSmall"]],
      [(node) => node.paths.nodes.set(node.device.path, { kind: "block", deviceNumber: "7:9" }), [
        "DeviceMismatch",
      ]],
      [(node) => node.paths.nodes.delete(node.device.path), ["DeviceMismatch"]],
      [(node) => node.table = node.table.filter((entry) => entry.mountPoint !== targetPath), [
        "TargetMissing",
      ]],
      [(node) => node.setStagingState({ staged: false }), ["NotStaged"]],
    ];
    for (const [occur, expected] of statusEvents) {
      const node = await published(capability);
      occur(node);
      assert.deepEqual(await reasons(node), expected, occur.toString());
      assert.deepEqual(node.events.health.get(volumeId), node.stagingState?.staged ? expected : undefined);
      assert.deepEqual(node.operations.filter((operation) => operation !== "stats"), []);
    }
  });
}

Deno.test("volumeHealth() of a hundred calls in a second reads connections and devices once, and of trouble anew", async () => {
  const node = await published();
  const counted = ["allConnections", "allDevices", "connections", "find"] as const;
  const { connector } = node.deps;
  const reads: string[] = [];
  for (const name of counted) {
    const own = connector[name] as (...args: unknown[]) => never;
    Object.assign(connector, { [name]: (...args: unknown[]) => (reads.push(name), own(...args)) });
  }
  for (let call = 0; call < 100; call++) assert.deepEqual(await reasons(node), []);
  assert.deepEqual(reads, ["allConnections", "allDevices"]);
  await node.clock.advance(1_000);
  assert.deepEqual(await reasons(node), []);
  assert.deepEqual(reads.splice(0), [...counted.slice(0, 2), ...counted.slice(0, 2)]);

  node.connections.set(nqn, { state: "connecting" });
  await node.clock.advance(999);
  assert.deepEqual(await reasons(node), [], "what was live within the last second");
  await node.clock.advance(1);
  assert.deepEqual(await reasons(node), ["ConnectionLost"]);
  node.connections.delete(nqn);
  assert.deepEqual(await reasons(node), [], "what was down within the last second");
  node.device.connected = false;
  await node.clock.advance(1_000);
  assert.deepEqual(await reasons(node), ["NotConnected"]);

  node.device.connected = true;
  await node.clock.advance(1_000);
  connector.allDevices = () => Promise.reject(new VolumeError("unavailable", "Cannot read another volume's"));
  assert.deepEqual(await reasons(node), []);
});

Deno.test("volumeHealth() reports errors after which a file system goes on, and nothing that is not known", async () => {
  const xfs: Capability = { access: "mount", filesystem: "xfs", mode: "single-node-writer" };
  const reads = (node: FakeNode) =>
    node.operations.filter((operation) => operation === "refusesReads").length;
  const broken = await published(xfs);
  broken.device.refusesReads = true;
  assert.deepEqual(await reasons(broken), ["DeviceUnreadable"]);
  broken.device.refusesReads = undefined;
  assert.deepEqual(await reasons(broken), []);
  broken.device.refusesReads = true;
  broken.connections.set(nqn, { state: "connecting" });
  await broken.clock.advance(1_000);
  assert.deepEqual(await reasons(broken), ["ConnectionLost"]);
  assert.equal(reads(broken), 2, "a read would wait for a device without a live path");
  const damaged = await published();
  damaged.device.errors = 3;
  assert.deepEqual(await reasons(damaged), ["FilesystemErrors"]);
  assert.equal(reads(damaged), 0, "the kernel shows the errors of ext4");
});

Deno.test("volumeHealth() reports a file system that never answers, in time", async () => {
  const node = await published();
  Object.assign(node.deps.filesystems, { stats: () => new Promise(() => {}) });
  const late = reasons(node);
  await node.clock.advance(5_000);
  assert.deepEqual(await late, ["FilesystemSilent"]);
});

Deno.test("volumeHealth() reports a target of a block volume that never answers, in time", async () => {
  const node = await published(block);
  const { info } = node.deps.paths;
  node.deps.paths.info = (path, context) =>
    path === targetPath ? new Promise(() => {}) : info.call(node.deps.paths, path, context);
  const late = reasons(node);
  await node.clock.advance(5_000);
  assert.deepEqual(await late, ["TargetSilent"]);
});

Deno.test("volumeHealth() throws deadline when the kernel shows nothing", async () => {
  const node = await published();
  node.deps.mounts.table = () => new Promise(() => {});
  const rejected = assert.rejects(node.service.volumeHealth(volumeId, call()), refusal("deadline"));
  await node.clock.advance(15_000);
  await rejected;
});

Deno.test("volumeHealth() reports a damaged state file", async () => {
  const node = await published();
  node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text: "{" });
  assert.deepEqual(await reasons(node), ["StateDamaged"]);
});

Deno.test("volumeHealth() does not count a mismatch as a refused action", async () => {
  const node = await published();
  node.device.nsid = 2;
  await reasons(node);
  assert.equal(node.events.reported.includes("identity mismatch"), false);
});
