import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeNode } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";

const injected = new VolumeError("internal", "injected");

for (const seen of [true, false]) {
  const where = seen ? "mounted" : "mounted where it is not seen";
  Deno.test(`stage() that cannot unmount again leaves connected what is ${where}`, async () => {
    const node = new FakeNode();
    node.before = (operation) => {
      if (seen && /^(?:unmount|removeEmptyFolder)/.test(operation)) throw injected;
      if (!operation.startsWith("setMode")) return;
      if (!seen) node.claimed = true;
      throw injected;
    };
    await assert.rejects(node.stage(), refusal("unavailable", /could not be undone: .*disconnect: .*in use/));
    assert.ok(!node.operations.includes("disconnect"));
    assert.equal(node.device.connected, true);
    Object.assign(node, { before: () => {}, claimed: false });
    await node.stage();
    assert.equal(node.stagingState?.staged, true);
  });
}
