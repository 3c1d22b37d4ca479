import { aStagingState } from "../../../tests/fakes/staging_state.ts";
import assert from "node:assert/strict";
import { block, ext4, FakeNode, nqn, targetPath, volumeId } from "../../../tests/fakes/node_deps.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { VolumeLocks } from "../../csi/server/call.ts";
import { FenceWatch } from "../fencing/fence_watch.ts";

const minuteMs = 60_000;

/** A volume that was staged and published, and a kubelet that has been killed after NodeUnpublish and is back. */
async function forgotten(capability: typeof ext4 | typeof block = block) {
  const node = new FakeNode();
  await node.stage({ capability });
  await node.publish({ capability });
  await node.unpublish();
  node.service.info();
  const locks = new VolumeLocks();
  const watch = new FenceWatch({
    deps: node.deps,
    fencing: node.service.fencing,
    forgotten: node.service.forgotten,
    lock: { tryTake: (keys) => locks.tryTake(keys, "watch") },
    random: new SeededRandom(),
    intervalMs: minuteMs,
  });
  const after = async (minutes: number) => {
    await node.clock.advance(minutes * minuteMs);
    await watch.check();
  };
  return { node, locks, after };
}

for (const capability of [ext4, block]) {
  Deno.test(`what a kubelet has forgotten over its restart is released: a ${capability.access} volume`, async () => {
    const { node, after } = await forgotten(capability);
    await after(9);
    assert.equal(node.device.connected, true, "the kubelet needs time");
    await after(1);
    assert.deepEqual([node.device.connected, node.table, node.stagingState], [false, [], undefined]);
    assert.match(node.reported.join(), /kubelet has forgotten/);
  });
}

Deno.test("nothing is taken for forgotten before a kubelet has registered the driver anew", async () => {
  const { node, after } = await forgotten();
  await after(9);
  node.service.info();
  await after(9);
  assert.equal(node.device.connected, true);
  await after(1);
  assert.equal(node.device.connected, false);
});

Deno.test("a volume that any call has named since is not forgotten", async () => {
  const calls = [
    (node: FakeNode) => node.stage({ capability: block }),
    (node: FakeNode) => node.unpublish(),
    (node: FakeNode) => node.publish({ capability: block }),
  ];
  for (const ask of calls) {
    const { node, after } = await forgotten();
    await ask(node);
    await after(60);
    assert.equal(node.device.connected, true);
  }
});

Deno.test("what is known of an unfinished file system stays when a kubelet has forgotten its volume: its next stage may come late", async () => {
  const { node, after } = await forgotten(ext4);
  node.setStagingState({ staged: false, filesystem: "started" });
  await after(11);
  assert.deepEqual([node.device.connected, node.stagingState, node.known?.filesystem], [
    false,
    undefined,
    "started",
  ]);
});

Deno.test("a volume is remembered until it is unstaged", async () => {
  const { node, after } = await forgotten(ext4);
  await node.stage();
  const { service } = node;
  const stagingState = aStagingState(node.stagingState!);
  await after(11);
  assert.equal(service.forgotten.mayBe(stagingState), false);
  await node.unstage();
  assert.equal(service.forgotten.mayBe(stagingState), true);
  await node.stage();
  await after(1);
  assert.deepEqual([node.device.connected, node.stagingState?.staged], [true, true]);
});

Deno.test("a volume that is published, bound or open is left as it is until it is not", async () => {
  const { node, after } = await forgotten();
  node.holder = { certain: true, description: "process 7" };
  await after(11);
  assert.deepEqual([node.device.connected, node.stagingState?.staged], [true, true]);
  node.holder = undefined;
  node.addMount("0:6", "/elsewhere", { filesystem: "devtmpfs", root: "loop3" });
  await after(1);
  assert.equal(node.device.connected, true);
  node.table = [];
  await after(1);
  assert.equal(node.device.connected, false);

  const used = await forgotten();
  await used.node.publish({ capability: block });
  used.node.service.info();
  await used.after(60);
  assert.deepEqual([used.node.device.connected, used.node.table.length], [true, 1], targetPath);
});

Deno.test("a volume that a call is changing, or whose target is away, is left for the next look", async () => {
  const { node, locks, after } = await forgotten();
  const release = locks.tryTake([volumeId], "a call")!;
  await after(11);
  assert.equal(node.device.connected, true);
  release();
  node.connections.set(nqn, { state: "connecting" });
  node.offered = () => [nqn];
  await after(1);
  node.connections.delete(nqn);
  await after(1);
  assert.equal(node.device.connected, false);
});
