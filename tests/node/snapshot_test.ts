import assert from "node:assert/strict";
import { btrfsMissing } from "../../src/simulator/btrfs_test_support.ts";
import { block, create, gibibyte, mount, publishRequest } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { call, ext4, nodeTest, RealNode, run, type TestVolume } from "./harness.ts";

const pool = { name: "storage-pool", sizeBytes: 64n * gibibyte, freeBytes: 64n * gibibyte };

/** A controller and a simulated router whose files lie in the node's backing folder, where the node finds them. */
function stackOn(node: RealNode): Promise<Stack> {
  return startStack({
    simulator: { backingDirectory: node.backing, exporter: "loop", pools: [pool] },
    flags: ["--nvme-address", "127.0.0.1"],
  });
}

/** Publishes a volume to the node and stages it; gives what unstages and unpublishes it. */
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

/** Writes numbered files, each synced before the next, until it is told to stop. */
async function writeOn(folder: string, signal: AbortSignal): Promise<number> {
  let count = 0;
  for (; !signal.aborted; count++) {
    using file = await Deno.open(`${folder}/${count}`, { write: true, create: true });
    await file.write(new TextEncoder().encode(`file ${count} `.repeat(5000)));
    await file.sync();
  }
  return count;
}

/** The synced files of a restored volume: each must be whole, but the one that was being written. */
async function assertWhole(folder: string, least: number): Promise<void> {
  for (let number = 0; number < least; number++) {
    const text = await Deno.readTextFile(`${folder}/${number}`);
    assert.equal(text, `file ${number} `.repeat(5000), `file ${number} of ${least}`);
  }
}

/** Looks at the image of an unpublished volume as `e2fsck` does, which changes nothing. */
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

nodeTest(
  "a snapshot of a mounted ext4 that is being written is whole after its journal was replayed",
  async (node) => {
    const image = `${node.folder}/btrfs.img`;
    await Deno.writeFile(image, new Uint8Array());
    await Deno.truncate(image, 1 << 30);
    await run("mkfs.btrfs", "--quiet", image);
    await run("mount", "-o", "loop", image, node.backing);
    await snapshotOfMounted(node);
    await run("umount", node.backing);
  },
  btrfsMissing,
);
