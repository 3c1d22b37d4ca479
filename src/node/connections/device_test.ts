import assert from "node:assert/strict";
import { call, FakeNode, nqn, sizeBytes } from "../../../tests/fakes/node_world.ts";
import { VolumeError } from "../../volume/errors.ts";
import { awaitDevice } from "./device.ts";

function connectedNode(): FakeNode {
  const node = new FakeNode();
  node.device.connected = true;
  node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:3" });
  return node;
}

Deno.test("awaitDevice() waits for the node of a device that the kernel shows already", async () => {
  const node = connectedNode();
  node.paths.nodes.delete("/dev/loop3");
  let found: unknown;
  const waiting = awaitDevice(node.world, nqn, 0n, call()).then((device) => found = device);
  await node.clock.advance(1_000);
  assert.equal(found, undefined);
  node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:3" });
  await node.clock.advance(1_000);
  assert.equal((await waiting).path, "/dev/loop3");
});

for (
  const [what, spoil, text] of [
    ["does not appear", (node) => node.device.connected = false, /does not appear, or is empty/],
    ["has no node", (node) => node.paths.nodes.delete("/dev/loop3"), /there is no \/dev\/loop3/],
    ["does not grow", (node) => node.device.sizeBytes = sizeBytes - 1n, /its size stays 1073741823/],
  ] as const satisfies readonly (readonly [string, (node: FakeNode) => unknown, RegExp])[]
) {
  Deno.test(`awaitDevice() says before the call's deadline that the device ${what}`, async () => {
    const node = connectedNode();
    spoil(node);
    const deadlineMs = node.clock.now() + 10_000;
    let refusedMs = 0;
    const refused = awaitDevice(node.world, nqn, sizeBytes, { ...call(), deadlineMs }).then(
      () => assert.fail("found"),
      (error) => {
        refusedMs = node.clock.now();
        return error;
      },
    );
    await node.clock.advance(20_000);
    const error = await refused;
    assert.ok(VolumeError.is(error, "unavailable") && text.test(error.message), String(error));
    assert.ok(refusedMs < deadlineMs && refusedMs > deadlineMs - 2_000);
  });
}
