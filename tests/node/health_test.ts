import assert from "node:assert/strict";
import { block, call, ext4, nodeTest, RealNode, run, TestVolume, xfs } from "./harness.ts";

async function reasons(node: RealNode, id = "pvc-1"): Promise<string[]> {
  const { problems } = await node.service.volumeHealth(id, call());
  return problems.map(({ reason }) => reason);
}

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: string };

  nodeTest(`${filesystem}: health reports what the kernel shows, until it is repaired`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    await node.publish(volume, { capability });
    assert.deepEqual(await reasons(node), []);
    await run("mount", "-o", "remount,ro", node.staging("pvc-1"));
    assert.deepEqual(await reasons(node), ["FilesystemReadOnly"]);
    await run("mount", "-o", "remount,rw", node.staging("pvc-1"));
    await run("umount", node.target("pvc-1"));
    assert.deepEqual(await reasons(node), ["TargetMissing"]);
    await node.publish(volume, { capability });
    assert.deepEqual(await reasons(node), []);
    await node.unpublish(volume);
    await node.unstage(volume);
    await assert.rejects(reasons(node), /Cannot find the volume/);
  });
}

nodeTest("xfs: health reports a file system that shut itself down", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume, { capability: xfs });
  await run("xfs_io", "-x", "-c", "shutdown", node.staging("pvc-1"));
  assert.deepEqual(await reasons(node), ["FilesystemSilent"]);
  const stats = node.service.stats("pvc-1", node.staging("pvc-1"), call());
  await assert.rejects(stats, /Input\/output error/);
  assert.ok(node.events.reported.includes("stale mount: stats"));
  await node.unstage(volume);
});

nodeTest(
  "ext4: health reports a file system that an error turned read-only, and statistics are answered",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume);
    const disk = (await node.device(volume)).slice("/dev/".length);
    await run("mount", "-o", "remount,errors=remount-ro", node.staging("pvc-1"));
    await Deno.writeTextFile(`/sys/fs/ext4/${disk}/trigger_fs_error`, "a test");
    assert.deepEqual(await reasons(node), ["FilesystemReadOnly"]);
    const answer = await node.service.stats("pvc-1", node.staging("pvc-1"), call());
    assert.ok(answer.kind === "filesystem" && answer.stats.totalBytes > 0n);
    await node.unstage(volume);
  },
);

nodeTest(
  "xfs: health reports a device that refuses reads, while the file system looks well",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability: xfs });
    assert.deepEqual(await reasons(node), []);
    // The kernel answers reads behind the end of a loop device's file with errors.
    await Deno.truncate(volume.image, 0);
    assert.deepEqual(await reasons(node), ["DeviceUnreadable"]);
    await node.unstage(volume);
  },
);

nodeTest("ext4: health reports errors after which the file system goes on", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume, { mountFlags: ["errors=continue"] });
  assert.deepEqual(await reasons(node), []);
  const disk = (await node.device(volume)).slice("/dev/".length);
  await Deno.writeTextFile(`/sys/fs/ext4/${disk}/trigger_fs_error`, "a test");
  assert.deepEqual(await reasons(node), ["FilesystemErrors"]);
  await node.unstage(volume);
});

nodeTest("block: health reports another device at the target", async (node) => {
  const capability = block;
  const volume = new TestVolume(node, "pvc-1", 16n << 20n);
  const other = new TestVolume(node, "pvc-2", 16n << 20n);
  for (const each of [volume, other]) await node.stage(each, { capability });
  await node.publish(volume, { capability });
  assert.deepEqual(await reasons(node), []);
  const target = node.target("pvc-1");
  await run("umount", target);
  assert.deepEqual(await reasons(node), ["TargetMissing"]);
  await run("mount", "--bind", await node.device(other), target);
  assert.deepEqual(await reasons(node), ["TargetMismatch"]);
  await run("umount", target);
  await node.publish(volume, { capability });
  assert.deepEqual(await reasons(node), []);
  await node.unpublish(volume);
  for (const each of [volume, other]) await node.unstage(each);
});

nodeTest("storage health finds no problem here, and leaves nothing in the state folder", async (node) => {
  const volume = new TestVolume(node, "pvc-1", 16n << 20n);
  await node.stage(volume, { capability: block });
  assert.deepEqual(await node.service.storageHealth(call()), []);
  assert.deepEqual([...await node.deps.paths.list(node.state)].toSorted(), ["loop", "volumes"]);
  await node.unstage(volume);
});
