import assert from "node:assert/strict";
import { VolumeLocks } from "../../../src/csi/server/call.ts";
import { systemRandom } from "../../../src/host/random.ts";
import { FenceWatch } from "../../../src/node/fencing/fence_watch.ts";
import { NodeService } from "../../../src/node/node_service.ts";
import { VolumeError } from "../../../src/volume/errors.ts";
import { settleTimesToUnstage } from "../../../src/volume/rules/fence.ts";
import { call } from "../../node/harness.ts";
import { runsOf, wrappedTool } from "../../node/wrapped_tool.ts";
import { type GuestNode, GuestVolume, NodeTests, sh, until } from "../kit/node.ts";
import { impatient, Writer } from "./kernel_export_inside.ts";

const small = 32n << 20n;
/** So short that a pool is locked for as many of them as an hour has of those that nodes have by default. */
const settleMs = 300;
const lockedMs = 3 * settleTimesToUnstage * settleMs;

/** What a router that withholds volumes may cost, and what hangs for it. */
export const fenceRows = new NodeTests();

/** Kernels from 6.10 on give a connection up at a refusal that says not to try again. */
function givesUpWhenRefused(): boolean {
  const [major, minor] = Deno.osRelease().split(".").map(Number) as [number, number];
  return major > 6 || major === 6 && minor >= 10;
}

interface Watched {
  readonly node: GuestNode;
  readonly locks: VolumeLocks;
  readonly watch: FenceWatch;
}

function watched(node: GuestNode): Watched {
  const deps = { ...node.deps, settings: { ...node.deps.settings, fenceSettleMs: settleMs } };
  const locks = new VolumeLocks();
  const watch = new FenceWatch({
    deps,
    fencing: new NodeService(deps).fencing,
    lock: { tryTake: (keys) => locks.tryTake(keys, "watch") },
    random: systemRandom,
    intervalMs: settleMs / 3,
  });
  return { node, locks, watch };
}

async function inUse(node: GuestNode, id: string): Promise<GuestVolume> {
  const volume = new GuestVolume(node, id, small);
  await node.stage(volume, impatient);
  await node.publish(volume);
  return volume;
}

async function linesOf(node: GuestNode, id: string): Promise<readonly string[]> {
  return (await Deno.readTextFile(`${node.target(id)}/log`)).trimEnd().split("\n");
}

async function takeDown(node: GuestNode, volume: GuestVolume): Promise<void> {
  await node.unpublish(volume);
  await node.unstage(volume);
  await sh(`e2fsck -fn ${volume.image}`);
}

/** Keeps the watch looking while the export is away, and gives it back. */
async function lock(
  node: GuestNode,
  volume: GuestVolume,
  meanwhile = () => Promise.resolve(),
): Promise<void> {
  const { watch } = watched(node);
  watch.start();
  try {
    volume.withdraw();
    await until("it is not live", async () => !(await node.states(volume)).includes("live"));
    await meanwhile();
    await new Promise((resolve) => setTimeout(resolve, lockedMs));
    volume.exportAgain();
  } finally {
    await watch.stop();
  }
}

fenceRows.add(
  "a pool is locked for long, and the port opens after its exports: all that was written is there, and it goes on",
  async (node) => {
    const volume = await inUse(node, "pvc-1");
    const writer = new Writer(`${node.target("pvc-1")}/log`);
    try {
      await writer.begins();
      await lock(node, volume);
      await until("live", async () => (await node.states(volume)).join() === "live");
      await writer.proceeds();
      const lines = await writer.stop();
      await takeDown(node, volume);
      return `${Deno.osRelease()}: locked for ${
        lockedMs / settleMs
      } settle times, ${lines} lines in order, clean`;
    } finally {
      await writer.kill();
    }
  },
);

fenceRows.add(
  "a pool is locked for long while another one is served: nothing acknowledged is lost",
  async (node) => {
    const [locked, other] = [await inUse(node, "pvc-1"), await inUse(node, "pvc-2")];
    const writers = [new Writer(`${node.target("pvc-1")}/log`), new Writer(`${node.target("pvc-2")}/log`)];
    const [writer, otherWriter] = writers as [Writer, Writer];
    try {
      await Promise.all(writers.map((each) => each.begins()));
      await lock(node, locked, async () => void await otherWriter.proceeds());
      await otherWriter.proceeds();
      await otherWriter.stop();
      const outcome = givesUpWhenRefused()
        ? await assertGivenUp(node, locked, writer)
        : await assertGoesOn(node, locked, writer);
      for (const volume of [locked, other]) await takeDown(node, volume);
      return `${Deno.osRelease()}: ${outcome}`;
    } finally {
      for (const each of writers) await each.kill();
    }
  },
);

async function assertGoesOn(node: GuestNode, volume: GuestVolume, writer: Writer): Promise<string> {
  await until("live", async () => (await node.states(volume)).join() === "live");
  await writer.proceeds();
  return `it goes on where it was, ${await writer.stop()} lines in order`;
}

/** The pod has to start anew, and finds what was acknowledged. */
async function assertGivenUp(node: GuestNode, volume: GuestVolume, writer: Writer): Promise<string> {
  assert.deepEqual(await node.states(volume), []);
  assert.equal(await writer.failed(), 7);
  const { acknowledged } = writer;
  await node.unpublish(volume);
  await node.unstage(volume);
  volume.mayFormat = false;
  await node.stage(volume, impatient);
  await node.publish(volume);
  const lines = await linesOf(node, volume.id);
  assert.deepEqual(lines, lines.map((_, index) => String(index + 1)));
  assert.ok(lines.length >= acknowledged, `${lines.length} lines of ${acknowledged} acknowledged ones`);
  return `the kernel gave it up; staged anew it has all ${acknowledged} acknowledged lines of ${lines.length}`;
}

fenceRows.add(
  "a resize that hangs in the kernel keeps its volume's lock, and the fence gets past it",
  async (node) => {
    const { folder, service } = node;
    const volume = await inUse(node, "pvc-1");
    volume.grow(2n * small);
    const { watch, locks } = watched(node);
    const release = locks.take([volume.id], "NodeExpandVolume");
    const range = { requiredBytes: 2n * small, limitBytes: 0n };
    const volumePath = node.target(volume.id);
    const expanded = service.expand({ volumeId: volume.id, volumePath, range }, call())
      .then(() => "done", (error) => VolumeError.is(error) ? error.kind : String(error)).finally(release);
    await until("resize2fs was started", () => runsOf(folder, "resize2fs") === 1);
    volume.withdraw();
    await until("connecting", async () => (await node.states(volume)).join() === "connecting");
    await sh(`touch ${folder}/go`);
    await until("resize2fs hangs", async () => await sh("pgrep -x resize2fs -r D || :") !== "");
    assert.equal(locks.size, 1);
    volume.epoch++;
    volume.mayFormat = false;
    volume.export();
    const endedMs = await until("the lock is free", async () => {
      await watch.check();
      return locks.size === 0;
    });
    const outcome = await expanded;
    await node.unpublish(volume);
    await node.unstage(volume);
    return `${Deno.osRelease()}: the expand ended ${endedMs} ms after the later epoch, with ${outcome}`;
  },
  (folder) => ({
    toolPaths: wrappedTool(
      folder,
      "resize2fs",
      'while [ ! -e "${0%/*}/go" ]; do sleep 0.1; done; exec "$tool" "$@"',
    ),
  }),
);
