import assert from "node:assert/strict";
import { connectByHand, type GuestNode, GuestVolume, NodeTests, refusal, sh, until } from "../kit/node.ts";
import { block, call, ext4 } from "../../node/harness.ts";
import { mountsUnder } from "../../support/left_here.ts";
import type { Capability } from "../../../src/volume/model/capabilities.ts";
import type { VolumeErrorKind } from "../../../src/volume/errors.ts";

const small = 16n << 20n;

/** Volumes with something of their own at both ends and in the middle. */
async function marked(node: GuestNode, id: string): Promise<GuestVolume> {
  const volume = new GuestVolume(node, id, small);
  for (const at of [0, 4, 15]) {
    await sh(`dd if=/dev/urandom of=${volume.image} bs=1M count=1 seek=${at} conv=notrunc status=none`);
  }
  return volume;
}

type Outcome = "OK" | readonly [VolumeErrorKind, RegExp];

/** Every call of the node service about a volume, and what it has to come to. */
async function tryAllCalls(
  node: GuestNode,
  volume: GuestVolume,
  capability: Capability,
  outcomes: Readonly<Record<string, Outcome>>,
  unharmed: () => Promise<void>,
): Promise<string> {
  const { service } = node;
  const [staging, target] = [node.staging(volume.id), node.target(volume.id)];
  const range = { requiredBytes: small, limitBytes: 0n };
  const volumeId = volume.id;
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    stage: () => node.stage(volume, { capability }),
    publish: () => node.publish(volume, { capability }),
    "publish elsewhere": () =>
      node.publish(volume, { capability, targetPath: node.target(volume.id, "pod-2") }),
    "publish read-only": () =>
      node.publish(volume, { capability, readOnly: true, targetPath: node.target(volume.id, "pod-3") }),
    expand: () => service.expand({ volumeId, volumePath: target, range }, call()),
    "expand staged": () => service.expand({ volumeId, volumePath: staging, range }, call()),
    stats: () => service.stats(volumeId, target, call()),
    "stats staged": () => service.stats(volumeId, staging, call()),
    health: async () => assert.notDeepEqual(await node.problems(volume), []),
    unpublish: () => node.unpublish(volume),
    unstage: () => node.unstage(volume),
  };
  const said: string[] = [];
  for (const [name, attempt] of Object.entries(calls)) {
    const outcome = outcomes[name];
    assert.ok(outcome !== undefined, name);
    try {
      if (outcome === "OK") await attempt();
      else await refusal(attempt(), ...outcome);
    } catch (error) {
      throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
    await unharmed();
    said.push(`${name} ${outcome === "OK" ? "OK" : outcome[0]}`);
  }
  return said.join(", ");
}

const away = ["unavailable", /refuses|no service listens/] as const;
const gone = ["precondition", /device is gone/] as const;

/** A second volume under the name and the number of the first. */
export const nameTests = new NodeTests();

nameTests.add(
  "raw block: the second volume is at the first one's name and number, and a stale bind shows it",
  async (node) => {
    const [first, second] = [await marked(node, "pvc-1"), await marked(node, "pvc-2")];
    await node.stage(first, { capability: block });
    await node.publish(first, { capability: block });
    const was = await node.connector.find(first.nqn, call());
    await sh(`nvme disconnect -n ${first.nqn}`);
    first.withdraw();
    await connectByHand(second);
    const is = await node.connector.find(second.nqn, call());
    assert.deepEqual([is?.path, is?.deviceNumber], [was?.path, was?.deviceNumber]);
    const before = [await first.digest(), await second.digest()];
    const showed = await tryAllCalls(node, first, block, {
      stage: away,
      publish: gone,
      "publish elsewhere": gone,
      "publish read-only": gone,
      expand: ["unavailable", /no connection to it is live/],
      "expand staged": ["unavailable", /no connection to it is live/],
      stats: ["unavailable", /device is gone/],
      "stats staged": ["unavailable", /device is gone/],
      health: "OK",
      unpublish: "OK",
      unstage: "OK",
    }, async () => {
      assert.deepEqual([await first.digest(), await second.digest()], before);
      assert.equal((await node.connector.find(second.nqn, call()))?.deviceNumber, is?.deviceNumber);
      assert.equal(await sh(`blockdev --getro ${is!.path}`), "0");
    });
    await sh(`nvme disconnect -n ${second.nqn}`);
    return `${is?.path} ${is?.deviceNumber}: ${showed}; both files as before`;
  },
);

nameTests.add(
  "file system: the second volume, mounted, has the first one's name and number, and is at its staging path",
  async (node) => {
    const [first, second] = [new GuestVolume(node, "pvc-1", small), new GuestVolume(node, "pvc-2", small)];
    await node.stage(first);
    await node.publish(first);
    await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "the first one's");
    const was = await node.connector.find(first.nqn, call());
    // As a boot of the machine does it: nothing of this is recorded.
    await sh(`umount ${node.target("pvc-1")} ${node.staging("pvc-1")} && nvme disconnect -n ${first.nqn}`);
    first.withdraw();
    // Else the kernel goes on writing to a new file system for a while.
    await node.stage(second, { mountFlags: ["noinit_itable"] });
    await node.publish(second);
    await Deno.writeTextFile(`${node.target("pvc-2")}/data`, "the second one's");
    const is = await node.connector.find(second.nqn, call());
    assert.deepEqual([is?.path, is?.deviceNumber], [was?.path, was?.deviceNumber]);
    // Somebody mounts by the old name.
    await sh(`mount ${is!.path} ${node.staging("pvc-1")}; sync`);
    const mounted = mountsUnder(node.folder);
    const before = [await first.digest(), await second.digest()];
    const showed = await tryAllCalls(node, first, ext4, {
      stage: away,
      publish: away,
      "publish elsewhere": away,
      "publish read-only": away,
      expand: ["not-found", /./],
      "expand staged": ["unavailable", /no connection to it is live/],
      stats: ["not-found", /./],
      "stats staged": ["unavailable", /device is gone/],
      health: "OK",
      unpublish: "OK",
      unstage: ["in-use", /mounted at/],
    }, async () => {
      await sh(`sync -f ${node.staging("pvc-2")}`);
      assert.deepEqual([await first.digest(), await second.digest()], before);
      assert.deepEqual(mountsUnder(node.folder), mounted);
    });
    await sh(`umount ${node.staging("pvc-1")}`);
    first.export();
    await node.stage(first);
    await node.publish(first);
    const texts = [first, second].map(({ id }) => Deno.readTextFileSync(`${node.target(id)}/data`));
    assert.deepEqual(texts, ["the first one's", "the second one's"]);
    for (const volume of [first, second]) {
      await node.unpublish(volume);
      await node.unstage(volume);
      await sh(`e2fsck -fn ${volume.image}`);
    }
    return `${is?.path} ${is?.deviceNumber}: ${showed}; then each with its own data`;
  },
);

nameTests.add(
  "a volume whose old device is held open comes back under another name: found by its NQN alone",
  async (node) => {
    const [first, second] = [await marked(node, "pvc-1"), await marked(node, "pvc-2")];
    await node.stage(first, { capability: block });
    const was = await node.connector.find(first.nqn, call());
    const holder = new Deno.Command("sh", { args: ["-c", `exec sleep 1000 < ${was!.path}`] }).spawn();
    try {
      await until("open", () => Deno.readTextFileSync(`/proc/${holder.pid}/comm`) === "sleep\n");
      await sh(`nvme disconnect -n ${first.nqn}`);
      await node.stage(second, { capability: block });
      await node.publish(second, { capability: block });
      await connectByHand(first);
      const [is, other] = await Promise.all(
        [first, second].map((volume) => node.connector.find(volume.nqn, call())),
      );
      const [controller] = await node.connector.connections(first.nqn, call());
      assert.notEqual(is?.deviceNumber, was?.deviceNumber);
      for (const [volume, device] of [[first, is], [second, other]] as const) {
        await sh(`dd if=${device!.path} iflag=direct bs=1M status=none | cmp - ${volume.image}`);
      }
      await node.publish(first, { capability: block });
      const before = await second.digest();
      await sh(
        `dd if=/dev/urandom of=${node.target("pvc-1")} bs=1M count=16 oflag=direct conv=notrunc status=none`,
      );
      await sh(`dd if=${node.target("pvc-1")} iflag=direct bs=1M status=none | cmp - ${first.image}`);
      assert.equal(await second.digest(), before);
      for (const volume of [first, second]) {
        await node.unpublish(volume);
        await node.unstage(volume);
      }
      return `was ${was?.path}; controller ${controller?.name} then had ${is?.path}, and ${other?.path} was the second one's`;
    } finally {
      holder.kill("SIGKILL");
      await holder.status;
    }
  },
);
