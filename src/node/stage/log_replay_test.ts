import assert from "node:assert/strict";
import { breakEachStep, call, ext4, FakeNode, stagingPath } from "../../../tests/fakes/node_deps.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";

const reading = { readonly: "true", mayFormat: "false" };
const replaying = { ...reading, mayReplay: "true" };

/** A node that gets a volume whose file system's log is not empty. */
function dirtyNode(): FakeNode {
  const node = new FakeNode();
  Object.assign(node.device, { content: "ext4", dirty: true });
  return node;
}

const mounts = (node: FakeNode) => node.operations.filter((name) => /^(replay|mountDevice)$/.test(name));

Deno.test("stage() throws unavailable until the log is clean where it only reads", async () => {
  const node = dirtyNode();
  await assert.rejects(
    node.stage({}, reading),
    refusal("unavailable", /log was not replayed.*delete all pods/),
  );
  assert.deepEqual([mounts(node), node.device.connected, node.stagingState], [[], false, undefined]);
  node.device.dirty = false;
  await node.stage({}, reading);
  assert.deepEqual(mounts(node), ["mountDevice"]);
});

Deno.test("stage() replays a log where it may, once, and leaves the device read-only", async () => {
  const node = dirtyNode();
  await node.stage({}, replaying);
  assert.deepEqual([mounts(node), node.device.readOnly], [["replay", "mountDevice"], true]);
  assert.deepEqual([node.stagingState?.staged, node.stagingState?.replaying], [true, undefined]);
  await node.stage({}, replaying);
  assert.deepEqual(mounts(node), ["replay", "mountDevice"]);
});

Deno.test("stage() replays no clean log, and does not read the log's state where it writes", async () => {
  const node = dirtyNode();
  node.device.dirty = false;
  await node.stage({}, replaying);
  assert.deepEqual(mounts(node), ["mountDevice"]);
  const writer = dirtyNode();
  await writer.stage({}, { mayFormat: "false" });
  assert.deepEqual([mounts(writer), writer.operations.includes("logState")], [["mountDevice"], false]);
});

Deno.test("stage() replays for the only writer even when its mount is to be read-only", async () => {
  const node = dirtyNode();
  await node.stage({ mountFlags: ["ro"] }, { mayFormat: "false" });
  assert.deepEqual(mounts(node), ["replay", "mountDevice"]);
  const reader = dirtyNode();
  const capability = { ...ext4, mode: "multi-node-reader-only" } as const;
  await assert.rejects(
    reader.stage({ capability }, { mayFormat: "false" }),
    refusal("unavailable", /replayed/),
  );
});

Deno.test("stage() refuses a log whose state is not known, and one that is not empty after its replay", async () => {
  const node = dirtyNode();
  const { filesystems } = node.deps;
  filesystems.logState = () => Promise.resolve({ state: "unknown", reason: "exit=1" });
  await assert.rejects(node.stage({}, replaying), refusal("unavailable", /is not known.*exit=1/));
  assert.deepEqual(mounts(node), []);
  filesystems.logState = () => Promise.resolve({ state: "dirty" });
  await assert.rejects(node.stage({}, replaying), refusal("unavailable", /not empty after a replay/));
  assert.deepEqual([mounts(node), node.device.connected], [["replay"], false]);
});

for (const how of ["fails", "crashes"] as const) {
  Deno.test(`stage() can be repeated when a step of a replay ${how}`, async () => {
    const prepare = () => Promise.resolve(dirtyNode());
    await breakEachStep(prepare, (node) => node.stage({}, replaying), async (node, step) => {
      if (how === "fails") assert.equal(node.table.length, 0, step);
      if (how === "fails") assert.ok(node.device.readOnly || !node.device.connected, step);
      await node.stage({}, replaying);
      assert.deepEqual(node.table.map((entry) => entry.mountPoint), [stagingPath], step);
      assert.deepEqual([node.device.dirty, node.device.readOnly], [false, true], step);
      assert.equal(mounts(node).at(-1), "mountDevice", step);
    }, how);
  });
}

Deno.test("unstage() cleans up after a crash during a replay", async () => {
  const node = dirtyNode();
  node.before = (operation) => {
    if (node.device.dirty === false && operation !== "replay") throw new Error("killed");
  };
  await assert.rejects(node.stage({}, replaying));
  node.before = () => {};
  assert.equal(node.stagingState?.replaying, true);
  await node.service.unstage({ volumeId: "pvc-1", stagingPath }, call());
  assert.deepEqual([node.table, node.device.connected], [[], false]);
});
