import { refusal, unsettled } from "../fakes/refusal.ts";
import assert from "node:assert/strict";
import { VolumeError } from "../../src/volume/errors.ts";
import { apart, block, call, ext4, nodeTest, run, TestVolume, xfs } from "./harness.ts";
import { loopsUnder, mountsUnder } from "../support/left_here.ts";

const small = 64n * 1024n * 1024n;

nodeTest(
  "a stage of another epoch is refused while the old one is published, and replaces it afterwards",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    await node.publish(volume);
    await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
    const old = await node.device(volume);
    volume.nextEpoch();
    await assert.rejects(node.stage(volume), unsettled("in-use", /published at/));
    await assert.rejects(node.publish(volume), unsettled("precondition", /another epoch/));
    await node.unpublish(volume);
    await node.stage(volume);
    assert.equal(await Deno.readTextFile(`${node.staging("pvc-1")}/data`), "kept");
    assert.deepEqual(await node.deps.connector.connected(call()), [volume.nqn]);
    assert.equal((await loopsUnder(node.folder)).length, 1);
    assert.ok(old.startsWith("/dev/loop"));
    await node.unstage(volume);
  },
);

nodeTest(
  "a publish stages the volume anew when its record was lost, and when its file system was unmounted",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    await Deno.remove(`${node.state}/volumes/pvc-1.json`);
    await node.publish(volume);
    await node.unpublish(volume);
    await run("umount", node.staging("pvc-1"));
    await node.publish(volume);
    await node.unpublish(volume);
    await node.unstage(volume);
  },
);

for (
  const [what, options] of [["file system", "remount,ro"], ["staging mount", "remount,bind,ro"]] as const
) {
  nodeTest(
    `a publish stages a volume anew whose ${what} was turned read-only`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1", small);
      await node.stage(volume);
      await run("mount", "-o", options, node.staging("pvc-1"));
      await node.publish(volume);
      await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "written");
      await node.unpublish(volume);
      await node.unstage(volume);
    },
  );
}

nodeTest(
  "a publish stages an xfs anew that an error shut down, of which the mount table shows nothing",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability: xfs });
    await Deno.writeTextFile(`${node.staging("pvc-1")}/data`, "kept");
    await run("sync", "-f", node.staging("pvc-1"));
    await run("xfs_io", "-x", "-c", "shutdown", node.staging("pvc-1"));
    await node.publish(volume, { capability: xfs });
    assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), "kept");
    await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "written");
    await node.unpublish(volume);
    await node.unstage(volume);
  },
);

nodeTest(
  "an ext4 that an error shut down is refused by a publish while a pod has it, and then staged anew",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    await node.publish(volume);
    await run("xfs_io", "-x", "-c", "shutdown", node.staging("pvc-1"));
    const second = { targetPath: node.target("pvc-1", "pod-2") };
    await assert.rejects(node.publish(volume, second), refusal("precondition", /delete the pods/));
    await assert.rejects(node.stage(volume), unsettled("in-use"));
    await node.unpublish(volume);
    await node.publish(volume, second);
    await Deno.writeTextFile(`${node.target("pvc-1", "pod-2")}/data`, "written");
    await node.unpublish(volume, "pod-2");
    await node.unstage(volume);
  },
);

nodeTest(
  "an unstage is refused while the volume is published, mounted elsewhere or a file of it is open",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    await node.publish(volume);
    await assert.rejects(node.unstage(volume), refusal("in-use", /published at/));
    await node.unpublish(volume);
    const elsewhere = `${node.folder}/elsewhere`;
    await Deno.mkdir(elsewhere);
    await run("mount", "--bind", node.staging("pvc-1"), elsewhere);
    await assert.rejects(node.unstage(volume), refusal("in-use", /mounted at/));
    await run("umount", elsewhere);
    const file = await Deno.open(`${node.staging("pvc-1")}/file`, { write: true, create: true });
    await assert.rejects(
      node.unstage(volume),
      refusal("in-use", new RegExp(`process ${Deno.pid} \\(.*\\) uses .*staging/pvc-1/file`)),
    );
    file.close();
    await node.unstage(volume);
  },
);

nodeTest(
  "an unstage is refused while the file system is mounted in another mount namespace, and a stage gives it back",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    const [command, ...args] = apart(node.folder, "echo ready; exec sleep 60");
    const holder = new Deno.Command(command!, { args, stdout: "piped" }).spawn();
    const output = holder.stdout.getReader();
    try {
      await output.read();
      await assert.rejects(
        node.unstage(volume),
        refusal("in-use", /in the mount namespace of process [0-9]+ \(sleep\)/),
      );
      assert.deepEqual(mountsUnder(node.folder), []);
      await node.stage(volume);
      await node.publish(volume);
      await node.unpublish(volume);
    } finally {
      holder.kill("SIGKILL");
      await holder.status;
      await output.cancel();
    }
    await untilReleased(() => node.unstage(volume));
  },
);

nodeTest(
  "a full disk under the state is told, and leaves nothing to mend once there is room",
  async (node) => {
    await run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", node.state);
    try {
      const volume = new TestVolume(node, "pvc-1", small);
      await node.stage(volume);
      await node.publish(volume);
      const fill = await new Deno.Command("dd", { args: ["if=/dev/zero", `of=${node.state}/fill`] }).output();
      assert.equal(fill.success, false);
      const full = refusal("unavailable", /Cannot write \/.*\/volumes\/pvc-1\.json: No space left/);
      await assert.rejects(node.unpublish(volume), full);
      await assert.rejects(node.unstage(volume), full);
      assert.deepEqual(await node.deps.paths.list(`${node.state}/volumes`), ["pvc-1.json"]);
      await Deno.remove(`${node.state}/fill`);
      await node.unpublish(volume);
      await node.unstage(volume);
    } finally {
      await run("umount", node.state);
    }
  },
);

/** A mount namespace disappears a moment after its last process. */
async function untilReleased(attempt: () => Promise<void>): Promise<void> {
  for (let i = 0; i < 50; i++) {
    try {
      return await attempt();
    } catch (error) {
      refusal("in-use")(error);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  await attempt();
}

nodeTest("an unstage works from what is connected when the state file is lost", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await node.stage(volume);
  await Deno.remove(`${node.state}/volumes/pvc-1.json`);
  await node.unstage(volume);
  assert.deepEqual(mountsUnder(node.folder), []);
  assert.deepEqual(await node.deps.connector.connected(call()), []);
});

nodeTest("an unstage removes a mount that was left behind without connection and state", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await node.stage(volume);
  await Deno.remove(`${node.state}/volumes/pvc-1.json`);
  await Deno.remove(`${node.state}/loop/${volume.nqn}`);
  await node.unstage(volume);
  assert.deepEqual(mountsUnder(node.folder), []);
  for (const device of await loopsUnder(node.folder)) await run("losetup", "-d", device);
});

nodeTest("a damaged state file stops everything but the unpublish", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await node.stage(volume);
  await node.publish(volume);
  const path = `${node.state}/volumes/pvc-1.json`;
  const text = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, text.slice(0, 100));
  for (const attempt of [() => node.stage(volume), () => node.publish(volume)]) {
    await assert.rejects(attempt(), unsettled("precondition", /damaged/));
  }
  await assert.rejects(node.unstage(volume), refusal("precondition", /damaged/));
  await node.unpublish(volume);
  assert.deepEqual(mountsUnder(node.folder), [node.staging("pvc-1")]);
  await Deno.writeTextFile(path, text);
  await node.unstage(volume);
});

nodeTest("an unpublish removes nothing that contains data", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await Deno.mkdir(`${node.target("pvc-1")}/data`, { recursive: true });
  await assert.rejects(node.unpublish(volume), refusal("precondition", /not an empty folder/));
  assert.deepEqual(await node.deps.paths.list(node.target("pvc-1")), ["data"]);
});

nodeTest("an unstage leaves alone a file named device in the volume's own root", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await node.stage(volume);
  await Deno.writeTextFile(`${node.staging("pvc-1")}/device`, "/dev/mine");
  await Deno.remove(`${node.state}/volumes/pvc-1.json`);
  await node.unstage(volume);
  await node.stage(volume);
  assert.equal(await Deno.readTextFile(`${node.staging("pvc-1")}/device`), "/dev/mine");
  await node.unstage(volume);
});

nodeTest(
  "something else mounted at the staging path is neither taken for the volume nor unmounted",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await Deno.mkdir(node.staging("pvc-1"), { recursive: true });
    await run("mount", "-t", "tmpfs", "none", node.staging("pvc-1"));
    try {
      await assert.rejects(node.stage(volume), unsettled("precondition", /something else/));
      await assert.rejects(
        node.stage(volume, { capability: block }),
        unsettled("precondition", /something is mounted/),
      );
      await assert.rejects(node.unstage(volume), refusal("precondition", /something else/));
      assert.deepEqual(mountsUnder(node.folder), [node.staging("pvc-1")]);
    } finally {
      await run("umount", node.staging("pvc-1"));
    }
  },
);

nodeTest("after a reboot a publish stages the same epoch again from the state file", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await node.stage(volume);
  await node.publish(volume);
  await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
  // The state after a reboot: the state files, and nothing in the kernel.
  await run("umount", node.target("pvc-1"));
  await run("umount", node.staging("pvc-1"));
  await run("losetup", "-d", await node.device(volume));
  await node.publish(volume);
  assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), "kept");
  await node.unpublish(volume);
  await node.unstage(volume);
});

nodeTest(
  "a cancelled stage lets mkfs finish, undoes the rest, and the retry does not format again",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    const start = node.processes.run;
    const controller = new AbortController();
    let formats = 0;
    node.processes.run = (tool, options) => {
      const running = start.call(node.processes, tool, options);
      if (tool === "mkfs.ext4") {
        formats++;
        controller.abort(new VolumeError("cancelled", "The caller cancelled the call"));
      }
      return running;
    };
    const request = node.stageRequest(volume);
    await assert.rejects(node.service.stage(request, call(controller.signal)), refusal("cancelled", /./));
    assert.deepEqual(mountsUnder(node.folder), []);
    assert.deepEqual(await loopsUnder(node.folder), []);
    await node.stage(volume);
    assert.equal(formats, 1);
    assert.equal((await Deno.stat(node.staging("pvc-1"))).mode! & 0o777, 0o777);
    await node.unstage(volume);
  },
);

nodeTest("statistics and expansion only work at paths where the volume is", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  const missing = [
    ["pvc-1", node.staging("pvc-1")],
    ["pvc-1", "some/path"],
    ["pvc-2", node.staging("pvc-1")],
    ["pvc-1", node.folder],
    ["pvc-1", `${node.folder}/nothing`],
  ] as const;
  await assert.rejects(node.service.stats(...missing[0], call()), refusal("not-found"));
  await node.stage(volume, { capability: ext4 });
  for (const [volumeId, volumePath] of missing.slice(1)) {
    await assert.rejects(node.service.stats(volumeId, volumePath, call()), refusal("not-found"));
    const range = { requiredBytes: 0n, limitBytes: 0n };
    await assert.rejects(node.service.expand({ volumeId, volumePath, range }, call()), refusal("not-found"));
  }
  await node.unstage(volume);
});
