import assert from "node:assert/strict";
import { CallRunner } from "../../src/csi/call_runner.ts";
import { nodeMethods } from "../../src/csi/node.ts";
import { VolumeLocks } from "../../src/csi/volume_lock.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { call, nodeTest, type RealNode, run, TestVolume } from "./harness.ts";

const small = 64n << 20n;

/** Calls NodeStageVolume as the server would, with a deadline; gives the code of the answer. */
function stager(node: RealNode, volume: TestVolume): (timeoutMs: number) => Promise<string> {
  const log = createLogger({ clock: systemClock, sink: () => {}, level: "error" });
  const runner = new CallRunner({ clock: systemClock, random: systemRandom, log });
  const locks = new VolumeLocks();
  const method = nodeMethods(node.service).NodeStageVolume as never;
  const request = {
    volumeId: volume.id,
    stagingTargetPath: node.staging(volume.id),
    volumeCapability: {
      accessType: "mount",
      mount: { fsType: "ext4", mountFlags: [], volumeMountGroup: "" },
      accessMode: { mode: "SINGLE_NODE_WRITER" },
    },
    publishContext: volume.publishContext(),
    volumeContext: {},
    secrets: {},
  };
  return async (timeoutMs) => {
    const deadlineMs = systemClock.now() + timeoutMs;
    const incoming = { path: "/csi.v1.Node/NodeStageVolume", request, deadlineMs, onCancel() {} };
    const answer = await runner.run(method, locks, incoming);
    return answer.ok ? "OK" : answer.code;
  };
}

nodeTest(
  "mkfs runs on past the deadline of its call: the retry is ABORTED, and then finds it done",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    const { filesystems } = node.world;
    const format = filesystems.format.bind(filesystems);
    let formats = 0;
    filesystems.format = async (...args) => {
      formats++;
      await format(...args);
      await systemClock.sleep(1_500);
    };
    const stage = stager(node, volume);
    assert.deepEqual([await stage(600), await stage(5_000)], ["DEADLINE_EXCEEDED", "ABORTED"]);
    let code = "";
    for (let attempt = 0; attempt < 100 && code !== "OK"; attempt++) {
      await systemClock.sleep(100);
      code = await stage(8_000);
    }
    assert.deepEqual([code, formats], ["OK", 1]);
    await node.unstage(volume);
  },
);

/** A file system that can be frozen, so that whoever asks for something on it hangs. */
async function withFreezable(node: RealNode, use: (folder: string) => Promise<void>): Promise<void> {
  const folder = `${node.folder}/slow`;
  const image = `${node.folder}/slow.img`;
  await Deno.mkdir(folder);
  await Deno.writeFile(image, new Uint8Array());
  await Deno.truncate(image, 256 << 20);
  await run("mkfs.ext4", "-q", image);
  await run("mount", "-o", "loop", image, folder);
  try {
    await use(folder);
  } finally {
    await run("fsfreeze", "--unfreeze", folder).catch(() => "it was not frozen");
    for (let attempt = 0; attempt < 50; attempt++) {
      await systemClock.sleep(100);
      if (await run("umount", folder).then(() => true, () => false)) break;
    }
  }
}

nodeTest("a volume that hangs in the kernel holds up no other volume, nor the process", async (node) => {
  await withFreezable(node, async (folder) => {
    const hung = new TestVolume(node, "pvc-hung", small);
    const other = new TestVolume(node, "pvc-other", small);
    const image = `${folder}/hung.img`;
    await Deno.writeFile(image, new Uint8Array());
    await Deno.truncate(image, Number(small));
    await Deno.remove(`${node.backing}/exports/${hung.nqn}`);
    await Deno.symlink(image, `${node.backing}/exports/${hung.nqn}`);
    await node.stage(hung);
    await Deno.writeTextFile(`${node.staging("pvc-hung")}/data`, "y".repeat(1 << 20));
    await run("fsfreeze", "--freeze", folder);
    let [worstLagMs, lastMs] = [0, performance.now()];
    const ticking = setInterval(() => {
      worstLagMs = Math.max(worstLagMs, performance.now() - lastMs);
      lastMs = performance.now();
    }, 20);
    const context = call(AbortSignal.timeout(3_000));
    const request = { volumeId: "pvc-hung", stagingPath: node.staging("pvc-hung") };
    const unstaged = node.service.unstage(request, context).then(() => "OK", () => "refused");
    await node.stage(other);
    await node.publish(other);
    await node.unpublish(other);
    await node.unstage(other);
    assert.equal(await unstaged, "refused", "what cannot be flushed is not unstaged");
    clearInterval(ticking);
    assert.ok(worstLagMs < 1_000, `the event loop stood still for ${worstLagMs} ms`);
    await run("fsfreeze", "--unfreeze", folder);
    for (let attempt = 0; attempt < 50; attempt++) {
      if (await node.unstage(hung).then(() => true, () => false)) return;
      await systemClock.sleep(100);
    }
    await node.unstage(hung);
  });
});
