import assert from "node:assert/strict";
import { FakeNode, nqn } from "../../tests/fakes/node_world.ts";
import { VolumeError } from "../volume/errors.ts";

for (const at of ["isUnclaimed", "erase"]) {
  Deno.test(`stage() formats nothing when the device becomes another one during ${at}`, async () => {
    const node = new FakeNode();
    const renumber = () => {
      node.device.deviceNumber = "7:9";
      node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:9" });
    };
    if (at === "erase") await interruptMkfs(node);
    node.after = (operation) => {
      if (operation === at) renumber();
    };
    const { isUnclaimed } = node.world.devices;
    node.world.devices.isUnclaimed = (...args) => {
      if (at === "isUnclaimed") renumber();
      return isUnclaimed(...args);
    };
    await assert.rejects(node.stage(), (error) => VolumeError.is(error, "identity-mismatch"));
    assert.equal(node.formats.length, 0);
    assert.equal(node.operations.includes("erase"), at === "erase");
  });
}

/** What is left when the driver is killed while mkfs runs. */
async function interruptMkfs(node: FakeNode): Promise<void> {
  node.before = (operation) => {
    if (operation === "format") throw new VolumeError("internal", "injected");
  };
  await assert.rejects(node.stage());
  node.before = () => {};
  Object.assign(node.devices.get(nqn)!, { content: "ext4", complete: false });
}

Deno.test("stage() takes no file system for whole while the mkfs that makes it may still run", async () => {
  const node = new FakeNode();
  await interruptMkfs(node);
  Object.assign(node.devices.get(nqn)!, { complete: true, connected: true });
  node.claimed = true;
  await assert.rejects(node.stage(), (error) => VolumeError.is(error, "busy"));
  assert.equal(node.stash?.mkfs, "started");
  assert.equal(node.operations.includes("check"), false);
  node.claimed = false;
  await node.stage();
  assert.deepEqual([node.stash?.mkfs, node.formats.length], ["done", 0]);
});
