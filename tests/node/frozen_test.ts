// Tests that no pod gets a file system that is still frozen: its writes would wait for good.
import assert from "node:assert/strict";
import { VolumeError } from "../../src/volume/errors.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import { refusal } from "../fakes/refusal.ts";
import { block, call, ext4, nodeTest, type RealNode, run, TestVolume, xfs } from "./harness.ts";

/** Writes a file and syncs it; throws where that waits. The kernel kills no process that waits for a thaw. */
async function write(node: RealNode, folder: string): Promise<void> {
  const done = `${node.folder}/written`;
  const script = '(echo text > "$0/file"; sync "$0/file"; touch "$1") > "$1.log" 2>&1 & ' +
    'for _ in $(seq 50); do test -e "$1" && exec rm "$1" || sleep 0.1; done; exit 1';
  await run("sh", "-ec", script, folder, done);
}

/** Thaws whatever of the volume is mounted, so that nothing is left of a test that has failed. */
async function thawing(node: RealNode, volume: TestVolume, use: (staging: string) => Promise<void>) {
  const staging = node.staging(volume.id);
  const device = await node.device(volume);
  try {
    await use(staging);
  } finally {
    const lives = (await run("sh", "-c", `ls -d /sys/fs/*/${device.slice(5)} || true`)).trim() !== "";
    if (lives) {
      await run(
        "sh",
        "-c",
        `mountpoint -q ${staging} || mount ${device} ${staging} || mount -o ro ${device} ${staging}; fsfreeze -u ${staging} || true; umount ${staging}`,
      );
    }
  }
}

/** Lets the next unstage end where a kill of the driver would end it: its mount is there and frozen. */
async function breakUnstage(node: RealNode, volume: TestVolume): Promise<void> {
  const { mounts } = node.deps;
  const killed = () => Promise.reject(new VolumeError("unavailable", "killed"));
  Object.assign(mounts, { thaw: killed, unmount: killed });
  await assert.rejects(node.unstage(volume), refusal("unavailable", /killed/));
  for (const name of ["thaw", "unmount"]) Reflect.deleteProperty(mounts, name);
}

const capabilities: readonly Capability[] = [ext4, xfs];

for (const capability of capabilities) {
  const filesystem = capability.access === "mount" ? capability.filesystem : "";
  nodeTest(
    `a frozen ${filesystem} that a killed unstage has left mounted is thawed by the next stage`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      await thawing(node, volume, async (staging) => {
        await run("fsfreeze", "--freeze", staging);
        await breakUnstage(node, volume);
        await node.stage(volume, { capability });
        await write(node, staging);
        await node.unstage(volume);
      });
    },
  );

  nodeTest(
    `a frozen ${filesystem} without a mount is ended by the next stage, of which a kill leaves a mount`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      const mountFlags = ["noatime"];
      await node.stage(volume, { capability, mountFlags });
      await thawing(node, volume, async (staging) => {
        await run("fsfreeze", "--freeze", staging);
        await run("umount", staging);
        await breakUnstage(node, volume);
        await node.stage(volume, { capability, mountFlags });
        await write(node, staging);
        assert.match(await run("findmnt", "-no", "OPTIONS", staging), /noatime/);
        await node.unstage(volume);
      });
    },
  );

  nodeTest(
    `the first publish thaws a ${filesystem}, and a second one leaves a backup alone`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      await thawing(node, volume, async (staging) => {
        await run("fsfreeze", "--freeze", staging);
        await node.publish(volume, { capability });
        await write(node, node.target(volume.id));
        await run("fsfreeze", "--freeze", staging);
        await node.publish(volume, { capability, targetPath: node.target(volume.id, "pod-2") });
        await node.stage(volume, { capability });
        await run("fsfreeze", "--unfreeze", staging);
        for (const pod of ["pod-1", "pod-2"]) await node.unpublish(volume, pod);
        await node.unstage(volume);
      });
    },
  );
}

nodeTest("stage and publish refuse a frozen file system that cannot be thawed", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume);
  await thawing(node, volume, async (staging) => {
    await run("fsfreeze", "--freeze", staging);
    const { mounts } = node.deps;
    const failing = () => Promise.reject(new VolumeError("unavailable", "Cannot thaw the file system"));
    mounts.thaw = failing;
    await assert.rejects(node.publish(volume), refusal("unavailable", /Cannot thaw/));
    await breakUnstage(node, volume);
    mounts.thaw = failing;
    await assert.rejects(node.stage(volume), refusal("unavailable", /Cannot thaw/));
    Reflect.deleteProperty(mounts, "thaw");
    await node.stage(volume);
    await write(node, staging);
    await node.unstage(volume);
  });
});

nodeTest(
  "a file system that the kernel has turned read-only and a backup has frozen is ended",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume);
    await thawing(node, volume, async (staging) => {
      await run("mount", "-o", "remount,ro", staging);
      await run("fsfreeze", "--freeze", staging);
      await run("umount", staging);
      await node.stage(volume);
      await write(node, staging);
      await node.unstage(volume);
    });
  },
);

nodeTest("stage() gives no raw device away on which a file system lives", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume);
  await thawing(node, volume, async (staging) => {
    await run("fsfreeze", "--freeze", staging);
    await run("umount", staging);
    for (const file of Deno.readDirSync(`${node.state}/volumes`)) {
      await Deno.remove(`${node.state}/volumes/${file.name}`);
    }
    await assert.rejects(
      node.stage(volume, { capability: block }),
      refusal("unavailable", /ext4 of \/dev\/loop[0-9]+ lives on without a mount/),
    );
    await node.stage(volume);
    await write(node, staging);
    await node.unstage(volume);
    await node.stage(volume, { capability: block });
    await node.unstage(volume);
  });
  assert.equal(await node.deps.connector.find(volume.nqn, call()), undefined);
});
