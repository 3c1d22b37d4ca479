import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  ext4,
  FakeNode,
  publishContext,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_world.ts";
import { VolumeError } from "../../volume/errors.ts";
import { filesystemNamed, inOwnWords, parsePublishContext } from "./contexts.ts";

const nqn = `nqn.2000-02.com.mikrotik:${volumeId}`;
/** As the earlier driver's controller publishes. */
const earlier = { nvme_address: "10.0.0.1", nvme_port: "4420", nvme_nqn: nqn, fs_type: "ext4" };
/** The volume context of its volumes. */
const volume = {
  rdsAddress: "10.0.0.1",
  nvmeAddress: "10.0.0.9",
  nvmePort: "4421",
  nqn,
  volumePath: "/pool/csi/pvc-1.img",
  // What it writes where its StorageClass says nothing; 0 stands for what the kernel does by itself.
  ctrlLossTmo: "-1",
  reconnectDelay: "5",
  keepAliveTmo: "0",
  migrationTimeoutSeconds: "300",
};
/** As this driver's controller publishes what it has taken over. */
const takenOver = publishContext({ nqn, epoch: "0-00000000", mayFormat: "false" });

/** A node that can reach the volume under the earlier driver's NQN. */
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
    { requestId: "t", signal: new AbortController().signal, deadlineMs: Infinity },
  );

Deno.test("inOwnWords() leaves a context of this driver's as it stands, whatever else is in it", () => {
  for (const own of [publishContext(), { ...earlier, epoch: "1-0a0b0c0d" }, { ...earlier, size: "1" }, {}]) {
    assert.equal(inOwnWords(own, {}), own);
  }
});

Deno.test("parsePublishContext() reads the earlier driver's, by the publish context before the volume's", () => {
  const parsed = {
    nqn,
    epoch: "0-00000000",
    addresses: ["10.0.0.1"],
    port: 4420,
    sizeBytes: 0n,
    readOnly: false,
    mayFormat: false,
  };
  assert.deepEqual(parsePublishContext(earlier, volumeId), parsed);
  assert.deepEqual(parsePublishContext(earlier, volumeId, volume), parsed);
  assert.deepEqual(parsePublishContext({}, volumeId, volume), {
    ...parsed,
    addresses: ["10.0.0.9"],
    port: 4421,
  });
});

Deno.test("parsePublishContext() refuses a context of the earlier driver's that is not whole, or another volume's", () => {
  const refused = (context: Record<string, string>, kind: "invalid" | "identity-mismatch") =>
    assert.throws(() => parsePublishContext(context, volumeId), (error) => VolumeError.is(error, kind));
  refused({ ...earlier, nvme_nqn: `${nqn}1` }, "identity-mismatch");
  refused({ ...earlier, nvme_nqn: `${nqn}:1-0a0b0c0d` }, "identity-mismatch");
  refused({ ...earlier, nvme_nqn: "" }, "invalid");
  refused({ ...earlier, nvme_address: "" }, "invalid");
  refused({ ...earlier, nvme_port: "0" }, "invalid");
  // What says a size must say one.
  refused({ ...takenOver, size: "0" }, "invalid");
});

Deno.test("filesystemNamed() goes by the volume, then by what the earlier driver published", () => {
  assert.equal(filesystemNamed({ fs_type: "xfs" }, { fsType: "ext4" }), "ext4");
  assert.equal(filesystemNamed({ fs_type: "xfs" }, {}), "xfs");
  assert.equal(filesystemNamed({}, {}), "");
});

Deno.test("a node stages and publishes what the earlier controller publishes, and its life goes on under this one", async () => {
  const node = earlierNode();
  await stage(node, earlier);
  assert.equal(node.stash?.sizeBytes, sizeBytes);
  await node.publish({ publishContext: earlier });
  const before = [...node.operations];
  const places = () => node.table.map(({ mountPoint, deviceNumber }) => `${deviceNumber} ${mountPoint}`);
  const table = places();
  // The controller was replaced, and the kubelet asks again.
  await stage(node, takenOver);
  await node.publish({ publishContext: takenOver });
  await node.publish({ publishContext: takenOver, targetPath: "/kubelet/pods/1/other" });
  assert.deepEqual(places().slice(0, table.length), table);
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
  assert.equal(node.stash, undefined);
});

Deno.test("a block volume of the earlier controller's is staged and published", async () => {
  const node = earlierNode({ content: "garbage" });
  await stage(node, { ...earlier, fs_type: "" }, block);
  await node.publish({ publishContext: earlier, capability: block });
  assert.equal(node.table.filter(({ mountPoint }) => mountPoint === targetPath).length, 1);
});

Deno.test("what the earlier node has staged is taken as it is: mounted, with no state file", async () => {
  for (const context of [earlier, takenOver]) {
    const node = earlierNode({ connected: true });
    node.paths.nodes.set(stagingPath, { kind: "directory" });
    node.addMount("7:3", stagingPath, { filesystem: "ext4" });
    await stage(node, context);
    assert.equal(node.stash?.staged, true);
    assert.deepEqual(node.formats, []);
    assert.equal(node.table.length, 1);
    await node.publish({ publishContext: context });
    assert.equal(node.table.length, 2);
  }
});

Deno.test("nothing that the earlier controller publishes is formatted, however blank it looks", async () => {
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
