import { reasonOf, refusal } from "../fakes/refusal.ts";
import assert from "node:assert/strict";
import { block, call, ext4, nodeTest, RealNode, run, TestVolume } from "./harness.ts";
import { mountsUnder } from "../support/left_here.ts";

const small = 64n * 1024n * 1024n;

async function twoVolumes(node: RealNode): Promise<readonly [TestVolume, TestVolume]> {
  const volumes = [new TestVolume(node, "pvc-1", small), new TestVolume(node, "pvc-2", small)] as const;
  for (const volume of volumes) await node.stage(volume);
  return volumes;
}

nodeTest(
  "an unpublish and an unstage with a path of another volume leave that one as it is",
  async (node) => {
    const [one, two] = await twoVolumes(node);
    await node.publish(two);
    const before = mountsUnder(node.folder);
    for (const targetPath of [node.target("pvc-2"), node.staging("pvc-2"), node.staging("pvc-1")]) {
      const request = { volumeId: "pvc-1", targetPath };
      await assert.rejects(node.service.unpublish(request, call()), refusal("precondition", /pvc-[12] is/));
    }
    await node.unpublish(two);
    const request = { volumeId: "pvc-1", stagingPath: node.staging("pvc-2") };
    await assert.rejects(node.service.unstage(request, call()), refusal("precondition", /another volume/));
    assert.deepEqual(mountsUnder(node.folder), before.slice(0, 2));
    for (const volume of [one, two]) await node.unstage(volume);
  },
);

nodeTest("a stage is refused on a device that a stale bind of an earlier one shows", async (node) => {
  const earlier = new TestVolume(node, "pvc-1", small);
  const later = new TestVolume(node, "pvc-2", small);
  await node.stage(earlier, { capability: block });
  await node.publish(earlier, { capability: block });
  const device = await node.device(earlier);
  await run("losetup", "-d", device);
  // Other programs on this machine use loop devices too, and may get the one that is free now: then it is tried again.
  let hit = false;
  const { connect } = node.deps.connector;
  node.deps.connector.connect = async (target, context) => {
    const missing = await connect.call(node.deps.connector, target, context);
    hit = (await node.deps.connector.find(target.nqn, context))?.path === device;
    if (!hit) throw new Error("another device than the stale bind's");
    return missing;
  };
  let refused: unknown;
  for (let tries = 0; !hit; tries++) {
    assert.ok(tries < 20, `${device} is never given out again`);
    refused = await node.stage(later).then(() => undefined, (error) => error);
  }
  refusal("in-use", /is bound at/)(reasonOf(refused));
  node.deps.connector.connect = connect;
  await node.unpublish(earlier);
  await node.unstage(earlier);
  await node.stage(later);
  await node.unstage(later);
});

nodeTest("staging and target paths may have spaces, backslashes and quotes in them", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  for (const name of ["a b", "a\\040b", "a\\b", "#a", "é 'q\" $x", "a,b=c", "-"]) {
    for (const capability of [ext4, block]) {
      const stagingPath = `${node.kubelet}/st ${name}/g`;
      const targetPath = `${node.kubelet}/pods/${name}/m ${name}`;
      await node.stage(volume, { capability, stagingPath });
      for (let i = 0; i < 2; i++) await node.publish(volume, { capability, stagingPath, targetPath });
      const stats = await node.service.stats("pvc-1", targetPath, call());
      assert.equal(stats.kind, capability === block ? "block" : "filesystem");
      assert.equal(mountsUnder(node.folder).length, capability === block ? 1 : 2);
      const unstage = () => node.service.unstage({ volumeId: "pvc-1", stagingPath }, call());
      await assert.rejects(unstage(), refusal("in-use", /published at/));
      await node.service.unpublish({ volumeId: "pvc-1", targetPath }, call());
      await unstage();
      assert.deepEqual(mountsUnder(node.folder), []);
    }
  }
});

nodeTest("a staging path or target that is a link is not followed", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  const outside = `${node.folder}/outside`;
  await Deno.mkdir(outside);
  await Deno.mkdir(`${node.kubelet}/staging`);
  await Deno.symlink(outside, node.staging("pvc-1"));
  await assert.rejects(node.stage(volume), refusal("precondition", /not a folder/));
  await Deno.remove(node.staging("pvc-1"));
  await node.stage(volume);
  await Deno.mkdir(`${node.kubelet}/pods/pod-1`);
  await Deno.symlink(outside, node.target("pvc-1"));
  await assert.rejects(node.publish(volume), refusal("precondition", /not a directory/));
  await assert.rejects(node.unpublish(volume), refusal("precondition", /neither a file nor a folder/));
  assert.deepEqual(mountsUnder(node.folder), [node.staging("pvc-1")]);
  await node.unstage(volume);
});

nodeTest("a loop device that was made read-only is writable for its next user", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  volume.readOnly = true;
  await node.stage(volume, { capability: block });
  const device = await node.device(volume);
  assert.equal(await run("blockdev", "--getro", device), "1\n");
  const { removeFile } = node.deps.paths;
  const flags: string[] = [];
  node.deps.paths.removeFile = async (path) => {
    // Right after the detach, before another program gets the device.
    if (path.endsWith(volume.nqn)) flags.push(await run("blockdev", "--getro", device));
    await removeFile.call(node.deps.paths, path);
  };
  await node.unstage(volume);
  assert.deepEqual(flags, ["0\n"]);
});
