import assert from "node:assert/strict";
import { CallRunner } from "../../src/csi/server/call_runner.ts";
import { nodeMethods } from "../../src/csi/services/node.ts";
import { VolumeLocks } from "../../src/csi/server/call.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import type { ToolName } from "../../src/host/tools.ts";
import { call, nodeTest, RealNode, run, TestVolume } from "./harness.ts";
import { runsOf, wrappedTool } from "./wrapped_tool.ts";

const small = 64n << 20n;

/** A call of NodeStageVolume, whose caller gives up as soon as the condition holds; returns the code of the answer. */
type Stager = (timeoutMs: number, isGivenUp?: () => boolean) => Promise<string>;

/** Calls NodeStageVolume as the server would. */
function stager(node: RealNode, volume: TestVolume): Stager {
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
  return async (timeoutMs, isGivenUp = () => false) => {
    let giveUp = () => {};
    const incoming = {
      path: "/csi.v1.Node/NodeStageVolume",
      request,
      deadlineMs: systemClock.now() + timeoutMs,
      onCancel: (listener: () => void) => void (giveUp = listener),
    };
    const polling = setInterval(() => isGivenUp() && giveUp(), 10);
    const answer = await runner.run(method, locks, incoming);
    clearInterval(polling);
    return answer.ok ? "OK" : answer.code;
  };
}

/** Tools that run long, and how the volume is prepared before it is staged. */
const slowTools: readonly [ToolName, (volume: TestVolume) => Promise<unknown>][] = [
  ["mkfs.ext4", () => Promise.resolve()],
  ["e2fsck", (volume) => {
    volume.mayFormat = false;
    return run("mkfs.ext4", "-q", volume.image);
  }],
  ["mount", () => Promise.resolve()],
];

for (const [tool, prepare] of slowTools) {
  nodeTest(
    `${tool} runs on when its call is given up: the retry is ABORTED, and then finds it done`,
    async ({ folder }) => {
      const toolPaths = wrappedTool(folder, tool, 'sleep 1.5; "$tool" "$@" && echo done >> $0.done');
      const node = new RealNode(folder, "node-2", { toolPaths });
      try {
        const volume = new TestVolume(node, "pvc-1", small);
        await prepare(volume);
        const stage = stager(node, volume);
        const first = stage(30_000, () => runsOf(folder, tool) === 1);
        assert.deepEqual([await first, await stage(5_000)], ["CANCELLED", "ABORTED"]);
        assert.equal(runsOf(folder, tool), 1, "the retry began nothing");
        let code = "ABORTED";
        for (let attempt = 0; attempt < 100 && code === "ABORTED"; attempt++) {
          await systemClock.sleep(100);
          code = await stage(8_000);
        }
        assert.equal(code, "OK");
        const finished = (await Deno.readTextFile(`${folder}/${tool}.done`)).split("\n").length - 1;
        // The first run was not killed; only mkfs is not repeated.
        assert.equal(finished, runsOf(folder, tool));
        assert.equal(finished, tool === "mkfs.ext4" ? 1 : 2);
        await node.unstage(volume);
      } finally {
        node.libc.close();
      }
    },
  );
}

/** A file system that can be frozen, so that its users hang. */
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

nodeTest("a volume that hangs in the kernel blocks neither other volumes nor the process", async (node) => {
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
    const hangingBefore = node.processes.hanging;
    assert.ok(hangingBefore > 0, "something of it hangs where no signal reaches");
    const startMs = performance.now();
    for (let attempt = 0; attempt < 5; attempt++) {
      assert.equal(await node.unstage(hung).then(() => "OK", () => "refused"), "refused");
    }
    assert.ok(performance.now() - startMs < 15_000, "it is refused without waiting again");
    assert.equal(node.processes.hanging, hangingBefore, "no attempt leaves one more child");
    clearInterval(ticking);
    assert.ok(worstLagMs < 5_000, `the event loop stood still for ${worstLagMs} ms`);
    await run("fsfreeze", "--unfreeze", folder);
    for (let attempt = 0; attempt < 50; attempt++) {
      if (await node.unstage(hung).then(() => true, () => false)) return;
      await systemClock.sleep(100);
    }
    await node.unstage(hung);
  });
});
