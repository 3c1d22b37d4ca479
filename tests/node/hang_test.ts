import assert from "node:assert/strict";
import { VolumeError } from "../../src/volume/errors.ts";
import { DeadFilesystem, deadFilesystemMissing } from "./dead_filesystem.ts";
import { block, call, ext4, nodeTest, RealNode, TestVolume } from "./harness.ts";

const small = 64n << 20n;
/** More than the runtime has threads. */
const many = 40;

function kindOf(outcome: Promise<unknown>): Promise<string> {
  return outcome.then(() => "OK", (error) => VolumeError.is(error) ? error.kind : String(error));
}

/** Measures how long the event loop and the runtime's file operations are blocked during an action. */
async function worstWaits(action: () => Promise<void>): Promise<{ loopMs: number; fileMs: number }> {
  const worst = { loopMs: 0, fileMs: 0 };
  let lastMs = performance.now();
  const reading: Promise<void>[] = [];
  const ticking = setInterval(() => {
    const nowMs = performance.now();
    worst.loopMs = Math.max(worst.loopMs, nowMs - lastMs);
    lastMs = nowMs;
    const readNow = Deno.stat("/").then(() => {
      worst.fileMs = Math.max(worst.fileMs, performance.now() - nowMs);
    });
    reading.push(readNow);
  }, 20);
  try {
    await action();
  } finally {
    clearInterval(ticking);
  }
  await Promise.all(reading);
  return worst;
}

nodeTest(
  "paths under dead file systems, more of them than there are threads, hold up no other volume",
  async ({ folder }) => {
    const node = new RealNode(folder, "node-2", { readTimeoutMs: 1_500 });
    using stack = new DisposableStack();
    stack.defer(() => node.libc.close());
    const pods = Array.from({ length: many }, (_, at) => `${node.kubelet}/pods/dead-${at}`);
    for (const pod of pods) await Deno.mkdir(pod);
    const dead = pods.map((pod) => stack.use(new DeadFilesystem(pod)));
    const unpublishAll = () =>
      pods.map((pod, at) =>
        kindOf(
          node.service.unpublish({ volumeId: `pvc-${at}`, targetPath: `${pod}/volumes/csi/mount` }, call()),
        )
      );
    const hung = unpublishAll();
    const waits = await worstWaits(async () => {
      for (const [id, capability] of [["pvc-alive", ext4], ["pvc-raw", block]] as const) {
        const volume = new TestVolume(node, id, small);
        await node.stage(volume, { capability });
        await node.publish(volume, { capability });
        await node.unpublish(volume);
        await node.unstage(volume);
      }
      assert.deepEqual(new Set(await Promise.all(hung)), new Set(["deadline"]));
    });
    // An operation that had to wait for a dead file system would wait until it is revived; a busy machine is slow, but
    // not that slow.
    assert.ok(waits.loopMs < 5_000 && waits.fileMs < 5_000, JSON.stringify(waits));
    for (const each of dead) each.revive();
    assert.deepEqual(new Set(await Promise.all(unpublishAll())), new Set(["OK"]));
  },
  deadFilesystemMissing,
);
