import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { breakEachStep, call, FakeNode, stagingPath } from "../../../tests/fakes/node_deps.ts";
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

/** A volume whose file system was frozen and unmounted behind the driver's back. */
async function stuck(): Promise<FakeNode> {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage();
  node.device.frozen = true;
  node.table = [];
  return node;
}

Deno.test("unstage() ends a frozen file system that lives on without its mount, after a crash at any step", async () => {
  const check = async (node: FakeNode) => {
    assert.notEqual(node.stagingState, undefined);
    await node.unstage();
    assert.deepEqual([node.device.frozen, node.device.connected, node.table], [false, false, []]);
    assert.match(node.reported.join(), /thawed a file system that was frozen/);
  };
  await breakEachStep(stuck, (node) => node.unstage(), check, "crashes");
});

Deno.test("stage() gives away no frozen file system after a crash of an unstage at any step", async () => {
  const check = async (node: FakeNode) => {
    await node.stage();
    await node.publish();
    assert.deepEqual([node.device.frozen ?? false, node.stagingState?.staged], [false, true]);
  };
  await breakEachStep(stuck, (node) => node.unstage(), check, "crashes");
});

Deno.test("unstage() does not thaw a file system that another mount namespace has, or may have", async () => {
  for (
    const [may, text] of [
      ["has", /mounted at \/data in the mount namespace of process 7 \(backup\)/],
      ["may have", /lives on without a mount .* could not be searched: mnt:\[4\] at \/run\/ns\/x/],
    ] as const
  ) {
    const node = await stuck();
    if (may === "has") node.namespaces = [{ at: "/data", pid: 7, name: "backup" }];
    else node.hidden = ["mnt:[4] at /run/ns/x"];
    await assert.rejects(node.unstage(), refusal("in-use", text));
    assert.deepEqual([node.device.frozen, node.device.connected], [true, true]);
  }
});

Deno.test("unstage() names a file system that lives on though it was not frozen", async () => {
  const node = await stuck();
  node.deps.mounts.thaw = () => Promise.resolve(false);
  await assert.rejects(
    node.unstage(),
    refusal("in-use", /the ext4 of \/dev\/loop3 lives on without a mount/),
  );
  assert.deepEqual([node.device.connected, node.table], [true, []]);
});

Deno.test("unstage() mounts nothing of a device that is not proven to be the volume", async () => {
  const node = await stuck();
  node.device.sizeBytes = 4096n;
  await assert.rejects(node.unstage(), refusal("in-use", /lives on without a mount/));
  assert.deepEqual(node.operations.filter((operation) => operation === "mountDevice").length, 1);
});

Deno.test("stage() says who else has a frozen file system that it thaws", async () => {
  const node = await stuck();
  node.namespaces = [{ at: "/data", pid: 7, name: "backup" }];
  const warned: unknown[] = [];
  node.deps.notes!.warn = (_message, fields) => void warned.push(fields.usedBy);
  await node.stage();
  assert.equal(node.device.frozen, false);
  assert.match(String(warned), /in the mount namespace of process 7 \(backup\)/);
});
