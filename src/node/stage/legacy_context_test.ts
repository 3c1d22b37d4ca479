import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import {
  block,
  ext4,
  FakeNode,
  publishContext,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";

const nqn = `nqn.2000-02.com.mikrotik:${volumeId}`;
/** What the legacy driver's controller publishes. */
const earlier = { nvme_address: "10.0.0.1", nvme_port: "4420", nvme_nqn: nqn, fs_type: "ext4" };
/** The volume context of its volumes. */
const volume = {
  rdsAddress: "10.0.0.1",
  nvmeAddress: "10.0.0.9",
  nvmePort: "4421",
  nqn,
  volumePath: "/pool/csi/pvc-1.img",
  // The legacy driver's values where its StorageClass has none; 0 stands for the kernel's default.
  ctrlLossTmo: "-1",
  reconnectDelay: "5",
  keepAliveTmo: "0",
  migrationTimeoutSeconds: "300",
};
/** What this driver's controller publishes for a migrated volume. */
const takenOver = publishContext({ nqn, epoch: "0-00000000", mayFormat: "false" });

/** A node that can reach the volume under the legacy driver's NQN. */
function earlierNode(change: Parameters<FakeNode["newDevice"]>[0] = {}): FakeNode {
  const node = new FakeNode();
  node.devices.clear();
  node.devices.set(nqn, node.newDevice({ content: "ext4", ...change }));
  return node;
}

const stage = (
  node: FakeNode,
  context: Record<string, string>,
  capability = ext4 as typeof ext4 | typeof block,
) =>
  node.service.stage(
    { ...node.stageRequest({ capability }), publishContext: context, volumeContext: volume },
    { requestId: "t", signal: new AbortController().signal },
  );

Deno.test("a node stages and publishes what the legacy controller publishes, and continues under this driver's controller", async () => {
  const node = earlierNode();
  await stage(node, earlier);
  assert.equal(node.stagingState?.namespaceBytes, sizeBytes);
  await node.publish({ publishContext: earlier });
  const before = [...node.operations];
  const locations = () => node.table.map(({ mountPoint, deviceNumber }) => `${deviceNumber} ${mountPoint}`);
  const table = locations();
  // The controller was replaced, and the kubelet calls again.
  await stage(node, takenOver);
  await node.publish({ publishContext: takenOver });
  await node.publish({ publishContext: takenOver, targetPath: "/kubelet/pods/1/other" });
  assert.deepEqual(locations().slice(0, table.length), table);
  const since = node.operations.slice(before.length);
  assert.ok(
    !since.some((operation) => /^(format|disconnect|unmount)/.test(operation)),
    since.join(),
  );
  await node.unpublish();
  await node.unpublish("/kubelet/pods/1/other");
  await node.unstage();
  assert.equal(node.devices.get(nqn)!.connected, false);
  assert.deepEqual(node.table, []);
  assert.equal(node.stagingState, undefined);
});

Deno.test("a block volume of the legacy controller's is staged and published", async () => {
  const node = earlierNode({ content: "garbage" });
  await stage(node, { ...earlier, fs_type: "" }, block);
  await node.publish({ publishContext: earlier, capability: block });
  assert.equal(node.table.filter(({ mountPoint }) => mountPoint === targetPath).length, 1);
});

Deno.test("what the legacy node has staged is used as it is: mounted, with no state file", async () => {
  for (const context of [earlier, takenOver]) {
    const node = earlierNode({ connected: true });
    node.paths.nodes.set(stagingPath, { kind: "directory" });
    node.addMount("7:3", stagingPath, { filesystem: "ext4" });
    await stage(node, context);
    assert.equal(node.stagingState?.staged, true);
    assert.deepEqual(node.formats, []);
    assert.equal(node.table.length, 1);
    await node.publish({ publishContext: context });
    assert.equal(node.table.length, 2);
  }
});

Deno.test("nothing that the legacy controller publishes is formatted, however blank it looks", async () => {
  for (const context of [earlier, { ...earlier, mayFormat: "true" }, takenOver]) {
    const node = earlierNode({ content: "blank" });
    await assert.rejects(
      stage(node, context),
      refusal("precondition", /rds-csi allow-format pvc-1/),
    );
    assert.deepEqual(node.formats, []);
    assert.equal(node.devices.get(nqn)!.connected, false);
  }
});
