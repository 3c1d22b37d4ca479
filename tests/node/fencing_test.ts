import { isCertain } from "../../src/volume/model/host/device_user.ts";
import assert from "node:assert/strict";
import { VolumeLocks } from "../../src/csi/server/call.ts";
import { systemRandom } from "../../src/host/random.ts";
import { FenceWatch } from "../../src/node/fencing/fence_watch.ts";
import { NodeService } from "../../src/node/node_service.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import { block, call, ext4, nodeTest, type RealNode, run, TestVolume } from "./harness.ts";
import { loopsUnder, mountsUnder } from "../support/left_here.ts";

const small = 64n << 20n;

/** A driver that has just been started on the node. */
function newWatch(node: RealNode, intervalMs = 50): FenceWatch {
  const locks = new VolumeLocks();
  return new FenceWatch({
    deps: node.deps,
    fencing: new NodeService(node.deps).fencing,
    lock: { tryTake: (keys) => locks.tryTake(keys, "watch") },
    random: systemRandom,
    intervalMs,
  });
}

/** Loop devices are never down: this reports those down whose export is gone. */
function goDownWithExport(node: RealNode): void {
  const { connector } = node.deps;
  const connections = connector.connections.bind(connector);
  connector.connections = async (nqn, context) => {
    const offered = await connector.offered({ address: "", port: 0 }, context);
    const paths = await connections(nqn, context);
    return offered.includes(nqn) ? paths : paths.map((path) => ({ ...path, state: "connecting" as const }));
  };
}

nodeTest(
  "a fenced volume is taken down at the start, and one that is only withdrawn is not",
  async (node) => {
    goDownWithExport(node);
    const [fenced, withdrawn] = [new TestVolume(node, "pvc-1", small), new TestVolume(node, "pvc-2", small)];
    for (const volume of [fenced, withdrawn]) await node.stage(volume, { capability: block });
    fenced.nextEpoch();
    withdrawn.withdraw();
    await newWatch(node).check();
    assert.deepEqual(await node.deps.connector.connected(call()), [withdrawn.nqn]);
    assert.deepEqual((await loopsUnder(node.folder)).length, 1);
    assert.deepEqual(await node.deps.paths.list(node.staging("pvc-1")), []);
    assert.deepEqual(await node.deps.paths.list(node.staging("pvc-2")), ["device"]);
    for (const volume of [fenced, withdrawn]) await node.unstage(volume);
    assert.deepEqual(await node.deps.paths.list(`${node.state}/volumes`), []);
  },
);

nodeTest(
  "the watch disturbs no volume that is live, while it is written, and ends when told to",
  async (node) => {
    goDownWithExport(node);
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    await node.publish(volume);
    const before = mountsUnder(node.folder);
    const watch = newWatch(node, 1);
    watch.start();
    const line = "0123456789abcdef".repeat(64);
    for (let i = 0; i < 200; i++) {
      await Deno.writeTextFile(`${node.target("pvc-1")}/data`, `${line}\n`, { append: true });
    }
    await watch.stop();
    assert.deepEqual(mountsUnder(node.folder), before);
    assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), `${line}\n`.repeat(200));
    await node.unpublish(volume);
    await node.unstage(volume);
  },
);

nodeTest(
  "a connection that nothing is known of is dropped at the start, and left while it is open",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume, { capability: block });
    await Deno.remove(`${node.state}/volumes/pvc-1.json`);
    const { devices } = node.deps;
    const openBy = devices.openBy.bind(devices);
    // Some processes of this machine cannot be inspected.
    devices.openBy = async (nodes, context) => (await openBy(nodes, context)).filter(isCertain);
    const watch = newWatch(node);
    const command = `exec 3<${await node.device(volume)}; echo open; exec sleep 60 >/dev/null`;
    const user = new Deno.Command("sh", { args: ["-c", command], stdout: "piped" }).spawn();
    const output = user.stdout.getReader();
    try {
      await output.read();
      await watch.check();
      assert.deepEqual(await node.deps.connector.connected(call()), [volume.nqn]);
    } finally {
      user.kill();
      await user.status;
      await output.cancel();
    }
    await watch.check();
    assert.deepEqual([await node.deps.connector.connected(call()), await loopsUnder(node.folder)], [[], []]);
  },
);

/** The state after a reboot: neither mounts nor connections, and the state files. */
async function reboot(node: RealNode): Promise<void> {
  for (const mountPoint of mountsUnder(node.folder).toReversed()) await run("umount", mountPoint);
  for (const device of await loopsUnder(node.folder)) await run("losetup", "-d", device);
}

const kinds: readonly [string, Capability][] = [["file system", ext4], ["block", block]];

for (const [kind, capability] of kinds) {
  nodeTest(
    `a ${kind} volume that was published is unstaged, or staged again, after a reboot`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1", small);
      const target = node.target("pvc-1");
      await node.stage(volume, { capability });
      await node.publish(volume, { capability });
      if (capability === ext4) await Deno.writeTextFile(`${target}/data`, "kept");
      await reboot(node);
      await newWatch(node).check();
      await node.stage(volume, { capability });
      await node.publish(volume, { capability });
      if (capability === ext4) assert.equal(await Deno.readTextFile(`${target}/data`), "kept");
      await reboot(node);
      volume.withdraw();
      await node.unpublish(volume);
      await node.unstage(volume);
      assert.deepEqual(await node.deps.paths.list(`${node.state}/volumes`), []);
    },
  );
}
