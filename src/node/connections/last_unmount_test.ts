import assert from "node:assert/strict";
import { call, FakeNode, stagingPath } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";

Deno.test("unstage() thaws a file system that a backup left frozen, and says so", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage();
  await node.publish();
  node.device.frozen = true;
  await node.unpublish();
  assert.equal(node.device.frozen, true, "a backup of another pod may be running");
  await node.unstage();
  assert.deepEqual([node.device.frozen, node.device.connected, node.table], [false, false, []]);
  assert.match(node.reported.join(), /thawed a file system that was frozen/);
});

Deno.test("stage() thaws a frozen file system that it finds alive without a mount", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage();
  node.device.frozen = true;
  node.table = []; // Unmounted by hand.
  await node.stage();
  assert.equal(node.device.frozen, false);
  await node.unstage();
});

Deno.test("stage() does not thaw what is mounted already: a backup may be running", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage();
  node.device.frozen = true;
  await node.stage();
  assert.equal(node.device.frozen, true);
});

Deno.test("unstage() goes on where it cannot be found whether a file system is frozen", async () => {
  const node = new FakeNode();
  await node.stage();
  node.deps.mounts.thaw = () =>
    Promise.reject(new VolumeError("deadline", "Cannot wait for fsfreeze any longer"));
  await node.service.unstage({ volumeId: "pvc-1", stagingPath }, call());
  assert.equal(node.device.connected, false);
  assert.match(node.reported.join(), /cannot find whether a file system is frozen/);
});
