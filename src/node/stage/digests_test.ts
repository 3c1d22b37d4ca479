// Checksums on the connection: whether it has them, only the record of this node tells.
import assert from "node:assert/strict";
import { block, FakeNode, injected } from "../../../tests/fakes/node_deps.ts";
import { unsettled } from "../../../tests/fakes/refusal.ts";

const digested = { volumeContext: { dataDigest: "true" } };

Deno.test("stage() connects with the requested checksums, and records them first", async () => {
  const node = new FakeNode();
  const { connect } = node.deps.connector;
  const asked: unknown[] = [];
  node.deps.connector.connect = (target, context) => {
    asked.push([target.digests, node.stagingState?.connection.digests]);
    return connect(target, context);
  };
  await node.stage(digested);
  await node.stage(digested);
  assert.deepEqual(asked, [[["data"], ["data"]], [["data"], ["data"]]]);
  await node.unstage();
  await node.stage();
  assert.deepEqual(asked.at(-1), [[], []]);
});

Deno.test("stage() connects anew for other checksums than those it is connected with, unless a pod has it", async () => {
  for (const [first, second] of [[{}, digested], [digested, {}]]) {
    const node = new FakeNode();
    await node.stage(first);
    await node.publish();
    await assert.rejects(node.stage(second), unsettled("in-use", /digests=.*published at/));
    await node.unpublish();
    await node.stage(second);
    const connects = node.operations.filter((operation) => /connect$/.test(operation));
    assert.deepEqual(connects, ["connect", "disconnect", "connect"]);
  }
});

Deno.test("stage() makes an unrecorded connection again where checksums are requested, unless it is used", async () => {
  const node = new FakeNode();
  node.device.connected = true;
  await node.stage(digested);
  assert.deepEqual(node.operations.filter((name) => /connect$/.test(name)), ["disconnect", "connect"]);
  const used = new FakeNode();
  used.device.connected = true;
  used.claimed = true;
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(used.stage(digested), unsettled("in-use", /device is in use/));
    assert.equal(used.device.connected, true);
  }
  const plain = new FakeNode();
  plain.device.connected = true;
  await plain.stage();
  assert.equal(plain.operations.includes("disconnect"), false);
});

Deno.test("stage() trusts no connection because of the device on which an earlier one had begun a file system", async () => {
  const node = new FakeNode();
  let isKilled = false;
  node.before = (operation) => {
    isKilled ||= operation === "format";
    if (isKilled) throw injected;
  };
  await assert.rejects(node.stage(digested));
  node.before = () => {};
  await node.unstage();
  assert.deepEqual([node.device.connected, node.stagingState], [false, undefined]);
  node.device.connected = true; // By hand, and without checksums.
  const before = node.operations.length;
  await node.stage(digested);
  const connects = node.operations.slice(before).filter((name) => /connect$/.test(name));
  assert.deepEqual(connects, ["disconnect", "connect"]);
});

Deno.test("stage() cuts no pod off from a raw volume whose record was lost, where checksums are requested", async () => {
  const request = { ...digested, capability: block };
  for (const [use, why] of [["bind", /bound at/], ["open", /is open: process 7/]] as const) {
    const node = new FakeNode();
    await node.stage(request);
    await node.publish({ capability: block });
    node.paths.nodes.delete("/state/volumes/pvc-1.json");
    // A process may have opened the device before its bind was unmounted.
    if (use === "open") {
      node.table = [];
      node.holder = { certain: true, description: "process 7 (qemu)" };
    }
    const connects = () => node.operations.filter((name) => /connect$/.test(name));
    // The refused call leaves a state file. It must not make the connection count as one with checksums.
    for (let attempt = 0; attempt < 3; attempt++) {
      await assert.rejects(node.stage(request), unsettled("in-use", why));
      assert.deepEqual([node.device.connected, connects()], [true, ["connect"]]);
    }
    node.table = [];
    node.holder = undefined;
    await node.stage(request);
    assert.deepEqual(connects(), ["connect", "disconnect", "connect"]);
  }
});
