import assert from "node:assert/strict";
import { block, FakeNode, nqn, stagingPath, volumeId } from "../../../tests/fakes/node_deps.ts";
import { VolumeLocks } from "../../csi/server/call.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { TrimWatch } from "./trim_watch.ts";

const hourMs = 3_600_000;
const trimmed = `trim ${stagingPath}`;

interface Watched {
  readonly node: FakeNode;
  readonly locks: VolumeLocks;
  readonly watch: TrimWatch;
}

/** A staged volume whose node trims every hour. `fraction` is the part of the interval before the first trim. */
async function staged(capability?: Capability, fraction = 0.5, intervalMs = hourMs): Promise<Watched> {
  const [node, locks] = [new FakeNode(), new VolumeLocks()];
  await node.stage(capability === undefined ? {} : { capability });
  node.operations.length = 0;
  node.reported.length = 0;
  node.events.reported.length = 0;
  const watch = new TrimWatch({
    deps: node.deps,
    lock: { tryTake: (keys, onWanted) => locks.tryTake(keys, "a trim", onWanted) },
    random: { fraction: () => fraction, bytes: (count) => new Uint8Array(count) },
    intervalMs,
  });
  return { node, locks, watch };
}

function trims({ operations }: FakeNode): number {
  return operations.filter((operation) => operation === trimmed).length;
}

Deno.test("a volume is trimmed after a part of the interval, and then once an interval", async () => {
  const { node, watch } = await staged(undefined, 0.25);
  const beganMs = node.clock.now();
  watch.start();
  await node.clock.advance(hourMs / 4 - 1);
  assert.equal(trims(node), 0);
  await node.clock.advance(1);
  assert.equal(trims(node), 1);
  assert.deepEqual(node.events.reported, [`trimmed: ok: 4096: ${beganMs + hourMs / 4}`]);
  assert.deepEqual(node.reported, ["trimmed the file system of a volume"]);
  await node.clock.advance(hourMs * 0.95);
  assert.equal(trims(node), 2);
  await watch.stop();
  await node.clock.advance(10 * hourMs);
  assert.equal(trims(node), 2);
});

Deno.test("nothing is trimmed without an interval", async () => {
  const { node, watch } = await staged(undefined, 0, 0);
  watch.start();
  await node.clock.advance(100 * hourMs);
  assert.equal(trims(node), 0);
  assert.equal(node.clock.waiting, 0);
});

Deno.test("a raw block volume is not trimmed", async () => {
  const { node, watch } = await staged(block);
  await watch.check();
  assert.deepEqual(node.operations, []);
});

const untrimmed: readonly (readonly [string, (watched: Watched) => void])[] = [
  ["staged read-only", ({ node }) => node.setStagingState({ readOnly: true })],
  ["not staged to the end", ({ node }) => node.setStagingState({ staged: false })],
  ["turned read-only by the kernel", ({ node }) => {
    node.table = node.table.map((entry) => ({ ...entry, superOptions: ["ro"] }));
  }],
  ["without a live path", ({ node }) => {
    node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
  }],
  ["another device's by now", ({ node }) => {
    node.table = node.table.map((entry) => ({ ...entry, deviceNumber: "7:8" }));
  }],
  ["not mounted", ({ node }) => {
    node.table = [];
  }],
  ["being changed by a call", ({ locks }) => void locks.take([volumeId], "a call")],
];

for (const [what, change] of untrimmed) {
  Deno.test(`a volume is not trimmed that is ${what}`, async () => {
    const watched = await staged();
    change(watched);
    await watched.watch.check();
    assert.equal(trims(watched.node), 0);
    assert.equal(watched.node.events.reported.some((each) => each.startsWith("trimmed")), false);
  });
}

Deno.test("a trim that fails, and a device that takes no discards, are counted and do not prevent the next round", async () => {
  const { node, locks, watch } = await staged();
  node.trim = () => Promise.reject(new VolumeError("deadline", "Cannot wait for fstrim any longer"));
  await watch.check();
  node.trim = () => Promise.resolve(undefined);
  await watch.check();
  node.trim = () => Promise.resolve(7n);
  await watch.check();
  const atMs = node.clock.now();
  assert.deepEqual(node.events.reported, [
    `trimmed: failed: 0: ${atMs}`,
    `trimmed: unsupported: 0: ${atMs}`,
    `trimmed: ok: 7: ${atMs}`,
  ]);
  assert.equal(locks.size, 0);
});

Deno.test("a trim holds the volume's lock, and ends for a call that wants it", async () => {
  const { node, locks, watch } = await staged();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  node.trim = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      begin();
    });
  const round = watch.check();
  await begun;
  assert.throws(() => locks.take([stagingPath], "NodeUnstageVolume"), /held by a trim/);
  await round;
  assert.equal(locks.size, 0);
  assert.deepEqual(node.reported, ["a trim was ended"]);
  assert.deepEqual(node.events.reported, []);
});

Deno.test("a trim that does not end is ended, and the lock released", async () => {
  const { node, locks, watch } = await staged();
  node.trim = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const round = watch.check();
  await node.clock.advance(630_000);
  await round;
  assert.equal(locks.size, 0);
  assert.deepEqual(node.events.reported, [`trimmed: failed: 0: ${node.clock.now()}`]);
});

Deno.test("volumes are trimmed one at a time", async () => {
  const { node, watch } = await staged();
  const other = nqn.replace("pvc-1", "pvc-2");
  const path = stagingPath.replace("pvc-1", "pvc-2");
  node.devices.set(other, node.newDevice({ path: "/dev/loop4", deviceNumber: "7:4" }));
  const publishContext = { ...node.stageRequest().publishContext, nqn: other };
  await node.stage({ volumeId: "pvc-2", stagingPath: path, publishContext });
  let [running, most, all] = [0, 0, 0];
  node.trim = async () => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    all++;
    return 1n;
  };
  await watch.check();
  assert.deepEqual([most, all], [1, 2]);
});
