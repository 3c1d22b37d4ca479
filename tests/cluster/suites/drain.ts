import assert from "node:assert/strict";
import { hostOutput } from "../../../tools/host_command.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { pause, secondsSince } from "../kit/waiting.ts";
import { identities, Writers } from "../kit/writers.ts";

const podCount = 20;

/** Pods with raw block volumes, under writes all the time, and what befalls nodes. */
export const suite: Suite = {
  what:
    `${podCount} pods write to raw block volumes while a kubelet is restarted, their node is drained, and loses power`,
  limitMinutes: 20,
  run: async (bench) => {
    // A folder with a dot in its name, as some distributions have one.
    const cluster = await bench.cluster({ nodes: { n1: "kubelet", n2: "kubelet.d" } });
    const drain = new Drain(bench, cluster);
    await bench.story([
      [`${podCount} pods run at one node and write`, () => drain.begin()],
      ["a kubelet that is killed and started again disturbs no pod", () => drain.restartKubelet()],
      [
        "drained from one node, all pods find at the other what they wrote last",
        () => drain.moveTo("n1", "n2"),
      ],
      ["the node that they left has nothing of them any more", () => drain.writers.assertLeft("n1")],
      ["and back again", () => drain.moveTo("n2", "n1")],
      ["the other node has nothing of them any more", () => drain.writers.assertLeft("n2")],
      ["switched off and on again, with its devices in another order, all pods find what they wrote", () => {
        return drain.reboot();
      }],
      ["everything can be deleted, and leaves nothing", async () => {
        await drain.writers.remove();
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

class Drain {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly writers: Writers;

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.writers = new Writers(cluster, podCount, bench.signal);
  }

  async begin(): Promise<string> {
    await this.writers.cordon("n2", true);
    const started = performance.now();
    await this.writers.create();
    await this.writers.runAt("n1");
    const seconds = secondsSince(started);
    const counts = await this.writers.progress();
    return `after ${seconds} s; they have written ${sum(counts)} times`;
  }

  async restartKubelet(): Promise<string> {
    const node = this.#cluster.node("n1");
    const registrations = await node.registrations();
    const before = await this.writers.pods();
    await node.kubelet.kill();
    const during = await this.writers.progress();
    await node.kubelet.start(this.#bench.signal);
    await node.registered(registrations + 1, this.#bench.signal);
    // Time for a kubelet that has forgotten its volumes to do something wrong.
    await pause(10_000);
    const after = await this.writers.progress();
    assert.deepEqual(identities(await this.writers.pods()), identities(before));
    assert(after.every((count, index) => count > during[index]!), "a pod has stopped writing");
    return `${sum(after) - sum(during)} writes later all pods are the same, and none was started again`;
  }

  /** Drains a node as a person would: no new pods, and the old ones evicted. */
  async moveTo(from: string, to: string): Promise<string> {
    await this.writers.cordon(to, false);
    await this.writers.cordon(from, true);
    const before = await this.writers.progress();
    const started = performance.now();
    await this.writers.evict();
    await this.writers.runAt(to);
    const seconds = secondsSince(started);
    await this.writers.compare(before);
    return `after ${seconds} s, ${podCount} of ${podCount} with their own last block, and they write on`;
  }

  /** Switches off the node that the pods are at. */
  async reboot(): Promise<string> {
    const node = this.#cluster.node("n1");
    const before = await this.writers.progress();
    const pods = identities(await this.writers.pods());
    const devices = await devicesBelow(node.kubelet.location.folder);
    await node.cutPower(this.#cluster.router.backing);
    const started = performance.now();
    await using _others = await OtherDevices.attach(this.#bench.folder, 5);
    await node.start(this.#bench.signal);
    await this.writers.begunAnew(pods);
    const seconds = secondsSince(started);
    await this.writers.compare(before);
    const moved = (await devicesBelow(node.kubelet.location.folder)).filter((one) => !devices.includes(one));
    assert(moved.length > 0, "all volumes have the devices that they had before");
    return `after ${seconds} s, ${podCount} of ${podCount} with their own last block; devices are others: ${
      moved[0]
    }`;
  }
}

/** The devices that a node's block volumes have, as `pvc-…: /dev/loop7`. */
async function devicesBelow(kubelet: string): Promise<string[]> {
  const listing = await hostOutput("losetup", ["--list", "--noheadings", "--raw", "--output=NAME,BACK-FILE"]);
  return listing.split("\n").map((line) => line.split(" "))
    .filter(([, file = ""]) => file.startsWith(`${kubelet}/`))
    .map(([device, file = ""]) => `${/pvc-[0-9a-f-]+/.exec(file)?.[0]}: ${device}`);
}

/** Loop devices that somebody else has taken in the meantime. */
class OtherDevices implements AsyncDisposable {
  readonly #devices: readonly string[];

  private constructor(devices: readonly string[]) {
    this.#devices = devices;
  }

  static async attach(folder: string, count: number): Promise<OtherDevices> {
    const file = `${folder}/other`;
    await Deno.writeFile(file, new Uint8Array(1 << 20));
    const devices: string[] = [];
    for (let index = 0; index < count; index++) {
      devices.push((await hostOutput("losetup", ["--find", "--show", file])).trim());
    }
    return new OtherDevices(devices);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const device of this.#devices) await hostOutput("losetup", ["--detach", device]);
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
