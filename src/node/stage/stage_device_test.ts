import assert from "node:assert/strict";
import { FakeNode } from "../../../tests/fakes/node_world.ts";

Deno.test("stage() grows a file system to its device, unless it has just made it there", async () => {
  const node = new FakeNode();
  const grows = () => node.operations.filter((operation) => operation === "grow").length;
  await node.stage();
  assert.deepEqual([node.formats.length, grows()], [1, 0]);
  await node.unstage();
  await node.stage({}, { mayFormat: "false" });
  assert.deepEqual([node.formats.length, grows()], [1, 1]);
});

Deno.test("stage() grows a file system of which the end of mkfs is not on record: the device may have grown since", async () => {
  const node = new FakeNode();
  await node.stage();
  node.setStash({ mkfs: "started", everMounted: false, rootOpened: false });
  node.table = [];
  await node.stage();
  assert.deepEqual(node.operations.filter((operation) => operation === "grow").length, 1);
});
