import assert from "node:assert/strict";
import { hostOutput } from "../../guest/kit/host_command.ts";
import { findLeftovers } from "../../sanity/leftovers.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { type Attachment, paths, type Pod, writersOf } from "../kit/objects.ts";
import { pause, secondsSince, until } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";

const podCount = 20;
const writers = Array.from({ length: podCount }, (_, index) => `writer-${index}`);

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
      ["the node that they left has nothing of them any more", () => drain.assertLeft("n1")],
      ["and back again", () => drain.moveTo("n2", "n1")],
      ["the other node has nothing of them any more", () => drain.assertLeft("n2")],
      ["switched off and on again, with its devices in another order, all pods find what they wrote", () => {
        return drain.reboot();
      }],
      ["everything can be deleted, and leaves nothing", async () => {
        await drain.end();
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

class Drain {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
  }

  async begin(): Promise<string> {
    await this.#cordon("n2", true);
    const started = performance.now();
    await this.#work.create(paths.statefulSets, writersOf("writer", podCount, writing));
    await this.#allRunAt("n1");
    const seconds = secondsSince(started);
    const counts = await this.#progress();
    return `after ${seconds} s; they have written ${sum(counts)} times`;
  }

  async restartKubelet(): Promise<string> {
    const { kubelet, registrations } = this.#cluster.node("n1");
    const before = await this.#pods();
    await kubelet.kill();
    const during = await this.#progress();
    await kubelet.start(this.#bench.signal);
    await this.#cluster.node("n1").registered(registrations + 1, this.#bench.signal);
    // Time for a kubelet that has forgotten its volumes to do something wrong.
    await pause(10_000);
    const after = await this.#progress();
    assert.deepEqual(identities(await this.#pods()), identities(before));
    assert(writers.every((_, index) => after[index]! > during[index]!), "a pod has stopped writing");
    return `${sum(after) - sum(during)} writes later all pods are the same, and none was started again`;
  }

  /** Drains a node as a person would: no new pods, and the old ones evicted. */
  async moveTo(from: string, to: string): Promise<string> {
    await this.#cordon(to, false);
    await this.#cordon(from, true);
    const before = await this.#progress();
    const started = performance.now();
    await Promise.all(writers.map((name) => this.#evict(name)));
    await this.#allRunAt(to);
    const seconds = secondsSince(started);
    await this.#compare(before);
    return `after ${seconds} s, ${podCount} of ${podCount} with their own last block, and they write on`;
  }

  /** Switches off the node that the pods are at. */
  async reboot(): Promise<string> {
    const node = this.#cluster.node("n1");
    const before = await this.#progress();
    const pods = identities(await this.#pods());
    const devices = await devicesBelow(node.kubelet.place.folder);
    await node.cutPower(this.#cluster.router.backing);
    const started = performance.now();
    await using _others = await OtherDevices.attach(this.#bench.folder, 5);
    await node.start(this.#bench.signal);
    await this.#begunAnew(pods);
    const seconds = secondsSince(started);
    await this.#compare(before);
    const moved = (await devicesBelow(node.kubelet.place.folder)).filter((one) => !devices.includes(one));
    assert(moved.length > 0, "all volumes have the devices that they had before");
    return `after ${seconds} s, ${podCount} of ${podCount} with their own last block; devices are others: ${
      moved[0]
    }`;
  }

  /** Waits until each of these pods runs in another container. */
  async #begunAnew(former: readonly string[]): Promise<void> {
    const same = async () => {
      const pods = (await this.#pods()).filter(({ status }) => status.phase === "Running");
      return podCount - identities(pods).filter((one) => !former.includes(one)).length;
    };
    await until("every pod to run in another container", async () => await same() === 0, {
      limitSeconds: 400,
      everyMs: 500,
      signal: this.#bench.signal,
      state: async () => `${await same()} do not; ${await this.#work.trouble()}`,
    });
  }

  /** Asserts that each pod has found what it wrote last, having written at least so often, and that it writes on. */
  async #compare(before: readonly number[]): Promise<void> {
    await this.#progress();
    const found = await Promise.all(writers.map((name) => this.#work.exec(name, "cat /tmp/found")));
    for (const [index, name] of writers.entries()) {
      const [, who, count] = /^(\S+) (\d+)$/.exec(found[index]!) ?? [];
      assert.equal(who, name, `${name} found what another pod wrote: ${found[index]}`);
      assert(
        Number(count) >= before[index]!,
        `${name} had written ${before[index]} times and found ${count}`,
      );
    }
  }

  /** Asserts that a node is rid of the volumes, and that they are attached at no other than where the pods are. */
  async assertLeft(node: string): Promise<string> {
    const { kubelet } = this.#cluster.node(node);
    const left = async () => {
      const { mounts, loops } = await findLeftovers(kubelet.place.folder);
      return [...mounts, ...loops];
    };
    await until(`${node} to be rid of its volumes`, async () => (await left()).length === 0, {
      limitSeconds: 60,
      signal: this.#bench.signal,
      state: async () => (await left()).join(", "),
    });
    const attachments = await this.#cluster.api.list<Attachment>(paths.attachments);
    assert.equal(attachments.length, podCount);
    assert(attachments.every(({ spec }) => spec.nodeName !== node), "a volume is still attached there");
    return "no mount, loop device, attachment";
  }

  async end(): Promise<void> {
    await this.#work.remove(paths.statefulSets, "writer");
    await this.#work.gone(paths.pods);
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.claims, ...writers.map((name) => `data-${name}`));
    await this.#work.gone(paths.volumes);
  }

  async #cordon(node: string, unschedulable: boolean): Promise<void> {
    await this.#cluster.api.patch(`${paths.nodes}/${node}`, { spec: { unschedulable } });
    const taints = async () => {
      const { spec } = await this.#cluster.api.get<{ spec: { taints?: unknown[] } }>(
        `${paths.nodes}/${node}`,
      );
      return (spec.taints ?? []).length;
    };
    await until(`the taint of ${node}`, async () => (await taints() > 0) === unschedulable, {
      limitSeconds: 30,
      signal: this.#bench.signal,
    });
  }

  async #evict(pod: string): Promise<void> {
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod } };
    await this.#cluster.api.create(`${paths.pods}/${pod}/eviction`, eviction);
  }

  async #allRunAt(node: string): Promise<void> {
    const run = async () =>
      (await this.#pods()).filter(({ metadata, spec, status }) =>
        spec.nodeName === node && status.phase === "Running" && metadata.deletionTimestamp === undefined
      ).length;
    await until(`${podCount} pods to run at ${node}`, async () => await run() === podCount, {
      limitSeconds: 400,
      everyMs: 500,
      signal: this.#bench.signal,
      state: async () => `${await run()} do; ${await this.#work.trouble()}`,
    });
  }

  #pods(): Promise<readonly Pod[]> {
    return this.#cluster.api.list<Pod>(paths.pods);
  }

  /** How often each pod has written; every one of them has done so once more before this ends. */
  async #progress(): Promise<number[]> {
    const read = async (name: string) =>
      Number(await this.#work.exec(name, "cat /tmp/count 2>/dev/null || echo 0"));
    const before = await Promise.all(writers.map(read));
    return await Promise.all(writers.map(async (name, index) => {
      let count = before[index]!;
      await until(`${name} to write once more`, async () => (count = await read(name)) > before[index]!, {
        limitSeconds: 60,
        everyMs: 500,
        signal: this.#bench.signal,
      });
      return count;
    }));
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

/** By which it is seen that a pod is another one, or was started again. */
function identities(pods: readonly Pod[]): string[] {
  return pods.map(({ metadata, status }) =>
    `${metadata.name} ${metadata.uid} ${status.containerStatuses?.[0]?.containerID}`
  ).toSorted();
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/**
 * Keeps what the first block says, then writes there who it is and how often it has written, reads that back past the cache,
 * and counts. What is read wrongly ends the pod's container.
 */
const writing = `set -e
read_block() { dd if=/dev/data bs=4096 count=1 iflag=direct 2>/dev/null | tr -d '\\000' | head -n 1; }
found=$(read_block)
echo "$found" >/tmp/found
n=\${found##* }
n=\${n:-0}
while :; do
  n=$((n + 1))
  echo "$POD_NAME $n" | dd of=/dev/data bs=4096 conv=notrunc,fsync,sync 2>/dev/null
  [ "$(read_block)" = "$POD_NAME $n" ]
  echo $n >/tmp/count.new
  mv /tmp/count.new /tmp/count
  sleep 1
done`;
