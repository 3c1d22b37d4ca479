import assert from "node:assert/strict";
import type { VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";
import { btrfsMissing } from "../support/btrfs.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import { refusal } from "../fakes/refusal.ts";
import { block, create, gibibyte, mount, publishRequest } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { call, ext4, nodeTest, RealNode, run, type TestVolume } from "./harness.ts";

const pool = { name: "storage-pool", sizeBytes: 64n * gibibyte, freeBytes: 64n * gibibyte };

/** A controller and a simulated router whose files are in the node's backing folder, where the node finds them. */
function stackOn(node: RealNode): Promise<Stack> {
  return startStack({
    simulator: { backingDirectory: node.backing, exporter: "loop", pools: [pool] },
    flags: ["--nvme-address", "127.0.0.1"],
  });
}

/** Publishes a volume to the node and stages it; returns a function that unstages and unpublishes it. */
async function attach(stack: Stack, node: RealNode, volumeId: string, capability = ext4) {
  const wanted = capability.access === "mount" ? mount : block;
  const { publishContext } = await stack.clients.controller.call(
    "ControllerPublishVolume",
    publishRequest(volumeId, "node-1", wanted),
  );
  const volume = { id: volumeId, publishContext: () => publishContext } as unknown as TestVolume;
  await node.stage(volume, { capability });
  return async () => {
    await node.service.unstage({ volumeId, stagingPath: node.staging(volumeId) }, call());
    await stack.clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
  };
}

async function snapshot(stack: Stack, name: string, sourceVolumeId: string) {
  const answer = await stack.clients.controller.call("CreateSnapshot", { name, sourceVolumeId });
  assert.equal(answer.snapshot?.readyToUse, true);
  return answer.snapshot.snapshotId;
}

function restored(stack: Stack, name: string, snapshotId: string): Promise<string> {
  return create(stack, name, { volumeContentSource: { snapshot: { snapshotId } } });
}

/** Writes numbered files, each synced before the next, until it is stopped. */
async function writeOn(folder: string, signal: AbortSignal): Promise<number> {
  let count = 0;
  for (; !signal.aborted; count++) {
    using file = await Deno.open(`${folder}/${count}`, { write: true, create: true });
    await file.write(new TextEncoder().encode(`file ${count} `.repeat(5000)));
    await file.sync();
  }
  return count;
}

/** Checks the synced files of a restored volume: each must be complete, except the one that was being written. */
async function assertWhole(folder: string, least: number): Promise<void> {
  for (let number = 0; number < least; number++) {
    const text = await Deno.readTextFile(`${folder}/${number}`);
    assert.equal(text, `file ${number} `.repeat(5000), `file ${number} of ${least}`);
  }
}

/** Checks the image of an unpublished volume with `e2fsck`, which changes nothing. */
async function fsck(image: string): Promise<void> {
  const device = (await run("losetup", "--find", "--show", "--read-only", image)).trim();
  try {
    await run("e2fsck", "-fn", device);
  } finally {
    await run("losetup", "--detach", device);
  }
}

async function snapshotOfMounted(node: RealNode): Promise<void> {
  await using stack = await stackOn(node);
  const source = await create(stack, "pvc-source");
  const detach = await attach(stack, node, source);
  const stop = new AbortController();
  const folder = node.staging(source);
  const writing = writeOn(folder, stop.signal);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const before = [...Deno.readDirSync(folder)].filter((entry) => /^\d+$/.test(entry.name)).length - 1;
  const snapshotId = await snapshot(stack, "snapshot-of-a-mounted-volume", source);
  stop.abort();
  const written = await writing;
  assert.ok(before > 0 && written > before);

  const copy = await restored(stack, "pvc-restored", snapshotId);
  const detachCopy = await attach(stack, node, copy);
  await assertWhole(node.staging(copy), before);
  await Deno.writeTextFile(`${node.staging(copy)}/0`, "changed in the copy");
  await assertWhole(folder, written);
  await detachCopy();
  await detach();
  for (const id of [copy, source]) {
    const { filePath } = stack.simulator.model.disks.findBySlot(id)!;
    await fsck(stack.simulator.model.backing.locate(filePath.slice(1))!);
  }
  for (const volumeId of [source, copy]) await stack.clients.controller.call("DeleteVolume", { volumeId });
  await stack.clients.controller.call("DeleteSnapshot", { snapshotId });
  const left = stack.simulator.model.files.list().filter((file) => /pvc-|snap-/.test(file.path));
  assert.deepEqual(left, []);
}

const readers: Sent<VolumeCapability> = { ...mount, accessMode: { mode: "MULTI_NODE_READER_ONLY" } };
const reading: Capability = { access: "mount", filesystem: "ext4", mode: "multi-node-reader-only" };

/** A claim that two nodes only read, restored from a snapshot of a volume under write. */
async function readersOfSnapshot(node: RealNode, other: RealNode): Promise<void> {
  await using stack = await stackOn(node);
  const source = await create(stack, "pvc-source");
  const detach = await attach(stack, node, source);
  const files = 200;
  const stop = new AbortController();
  const folder = node.staging(source);
  const writing = writeOn(folder, stop.signal);
  while ([...Deno.readDirSync(folder)].length <= files + 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const snapshotId = await snapshot(stack, "snapshot-of-a-mounted-volume", source);
  stop.abort();
  await writing;
  const copy = await create(stack, "pvc-restored", {
    volumeContentSource: { snapshot: { snapshotId } },
    volumeCapabilities: [readers],
  });
  const publish = async (nodeId: string) => {
    const request = publishRequest(copy, nodeId, readers);
    const { publishContext } = await stack.clients.controller.call("ControllerPublishVolume", request);
    return { id: copy, publishContext: () => publishContext } as unknown as TestVolume;
  };
  const first = await publish("node-1");
  const second = await publish("node-2");
  const waits = refusal("unavailable", /log was not replayed/);
  await assert.rejects(other.stage(second, { capability: reading }), waits);
  await node.stage(await publish("node-1"), { capability: reading });
  await other.stage(second, { capability: reading });
  for (const each of [node, other]) await assertWhole(each.staging(copy), files);
  await node.stage(first, { capability: reading });
  for (const [each, nodeId] of [[node, "node-1"], [other, "node-2"]] as const) {
    await each.service.unstage({ volumeId: copy, stagingPath: each.staging(copy) }, call());
    await stack.clients.controller.call("ControllerUnpublishVolume", { volumeId: copy, nodeId });
  }
  await detach();
}

/** Gives a node's backing folder its own Btrfs. */
async function onBtrfs(node: RealNode, use: () => Promise<void>): Promise<void> {
  const image = `${node.folder}/btrfs.img`;
  await Deno.writeFile(image, new Uint8Array());
  await Deno.truncate(image, 1 << 30);
  await run("mkfs.btrfs", "--quiet", image);
  await run("mount", "-o", "loop", image, node.backing);
  await use();
  await run("umount", node.backing);
}

nodeTest(
  "a snapshot of a mounted ext4 that is being written is whole after its journal was replayed",
  (node) => onBtrfs(node, () => snapshotOfMounted(node)),
  btrfsMissing,
);

nodeTest(
  "a claim for readers on two nodes, restored from a snapshot of a mounted ext4, shows all that was synced",
  async (node) => {
    const other = new RealNode(node.folder, "node-2");
    try {
      await onBtrfs(node, () => readersOfSnapshot(node, other));
    } finally {
      other.libc.close();
    }
  },
  btrfsMissing,
);
