import assert from "node:assert/strict";
import { paths, type Pod, statefulSetOf, type Wish } from "../../../cluster/kit/objects.ts";
import { secondsSince, until } from "../../../cluster/kit/waiting.ts";
import { Workload } from "../../../cluster/kit/workload.ts";
import type { Bench } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import type { MachineNode } from "../../machine/node.ts";
import { controllersOf, podsPath } from "../../machine/release.ts";
import type { Steps } from "./on_machines.ts";
import { fileOnRouter } from "./router_files.ts";
import { type Progress, progressText, WritingPod, writingTo } from "./writing.ts";

/** Longest until a pod runs, and until a node has given up what it lost, in seconds. */
const limitSeconds = 600;

/** The StatefulSet that writes, its only pod, and what that writes to. */
const set = "moving";
const pod = "moving-0";
const claims: Readonly<Record<string, Wish>> = {
  ext4: { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" },
  raw: { mode: "Block", mebibytes: 1024, storageClass: "rds-block" },
};
const targets = { ext4: "/ext4/counter", raw: "/dev/raw" };

/** How many times an ordinary start of a pod its failover may take. */
const ordinaryStarts = 2;

/** Longest until the volumes of the pod's successor are attached to its node, in seconds: the controller's part of a failover. */
const attachedLimitSeconds = 20;

/** A pod whose node stands still, and which goes on at another one before the first goes on too. */
export class MachineFailover {
  readonly #bench: Bench;
  readonly #cluster: MachineCluster;
  /** The node that is frozen, and the one whose controller leads: that a lost controller's lead is taken over, others show. */
  #lost = "";
  #other = "";
  readonly #work: Workload;
  readonly #writer: WritingPod;
  /** The pod's container at the node that is lost. */
  #container = "";
  #uid: string | undefined;
  #failoverSeconds = NaN;

  constructor(bench: Bench, cluster: MachineCluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
    this.#writer = new WritingPod(pod, targets, this.#work, bench.signal);
  }

  /** The steps, in their order. */
  steps(): Steps {
    return [
      ["a pod writes to an ext4 and a raw block volume at a node", () => this.begin()],
      ["the node is frozen, and after the taint the pod goes on at another one", () => this.lose()],
      ["the node thaws, writes nothing, and gives up what it had", () => this.thaw()],
      ["the pod that took its place started within two ordinary starts there", () => this.compare()],
    ];
  }

  async begin(): Promise<string> {
    const names = this.#cluster.nodes.map(({ guest }) => guest.name);
    this.#other = (await controllersOf(this.#cluster)).leadingNode;
    this.#lost = names.find((name) => name !== this.#other)!;
    await this.#work.cordon(this.#other, true);
    const started = performance.now();
    await this.#work.create(paths.statefulSets, statefulSetOf(set, 1, writingTo(targets), claims));
    await this.#runsAt(this.#lost);
    const seconds = secondsSince(started);
    await this.#work.cordon(this.#other, false);
    const { metadata, status } = await this.#cluster.api.get<Pod>(`${paths.pods}/${pod}`);
    this.#uid = metadata.uid;
    this.#container = status.containerStatuses![0]!.containerID!.replace("containerd://", "");
    return `it runs at ${this.#lost} after ${seconds} s; ${progressText(await this.#writer.progress())}`;
  }

  /** The kubelet ends first: when the machine goes on, only the fence is between its pod and the volumes. */
  async lose(): Promise<string> {
    const { kubelet, guest } = this.#node;
    const before = await this.#writer.progress();
    await kubelet.kill();
    await guest.freeze();
    const frozen = performance.now();
    await this.#work.notReady(this.#lost);
    const goneSeconds = secondsSince(frozen);
    await this.#work.setOutOfService(this.#lost);
    const tainted = performance.now();
    await this.#replaced();
    const replaced = performance.now();
    const replacedSeconds = secondsSince(tainted);
    await this.#attachedAt(this.#other);
    const attachedSeconds = secondsSince(replaced);
    await this.#runsAt(this.#other);
    this.#failoverSeconds = Number(secondsSince(replaced));
    const after = await this.#hasAll(before);
    return `it counts as gone after ${goneSeconds} s; ${replacedSeconds} s after the taint there is another pod, whose volumes are attached ${attachedSeconds} s later, and which runs ${this.#failoverSeconds} s later; ${
      progressText(after)
    }`;
  }

  async thaw(): Promise<string> {
    await this.#writer.exec("kill -STOP -1");
    await this.#writer.exec("sync");
    const digests = await this.#restingDigests();
    const { guest, kubelet, runtime } = this.#node;
    await guest.thaw();
    const thawed = performance.now();
    const said = () => runtime.exec(this.#container, "cat /tmp/failed 2>/dev/null || :");
    const failures = await until("the writes of the thawed pod to fail", async () => {
      const lines = (await said()).trim().split("\n").filter((line) => line !== "");
      return lines.length === Object.keys(targets).length && lines;
    }, { limitSeconds, everyMs: 1000, signal: this.#bench.signal, state: said });
    const connections = () => guest.sh("ls /sys/class/nvme");
    await until("the thawed node to be without connections", async () => await connections() === "", {
      limitSeconds,
      everyMs: 1000,
      signal: this.#bench.signal,
      state: connections,
    });
    const seconds = secondsSince(thawed);
    assert.deepEqual(await this.#digests(), digests, "the thawed node has written");
    await this.#cluster.api.patch(`${paths.nodes}/${this.#lost}`, { spec: { taints: null } });
    await kubelet.start(this.#bench.signal);
    await until("the thawed node to be without the pod's volumes", async () => await this.#mounts() === "", {
      limitSeconds,
      everyMs: 1000,
      signal: this.#bench.signal,
      state: () => this.#mounts(),
    });
    assert.deepEqual(await this.#digests(), digests, "the thawed node has written");
    await this.#writer.exec("kill -CONT -1");
    const progress = progressText(await this.#writer.progress());
    return `its writes failed, and its connections are gone after ${seconds} s (${
      failures.join("; ")
    }); not one byte has changed; ${progress}`;
  }

  /** As in the failover, a controller starts at the node too: the node's only processor works for both. */
  async compare(): Promise<string> {
    const before = await this.#writer.progress();
    await this.#work.cordon(this.#lost, true);
    await this.#scale(0);
    await this.#work.gone(paths.pods);
    await this.#work.gone(paths.attachments);
    const { waiting } = await controllersOf(this.#cluster);
    for (const controller of waiting) await this.#cluster.api.remove(`${podsPath}/${controller}`);
    const started = performance.now();
    await this.#scale(1);
    await this.#runsAt(this.#other);
    const ordinarySeconds = Number(secondsSince(started));
    const after = await this.#hasAll(before);
    await this.#work.cordon(this.#lost, false);
    await this.#work.remove(paths.statefulSets, set);
    await this.#work.gone(paths.pods);
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.claims, ...Object.keys(claims).map((claim) => `${claim}-${pod}`));
    const said = `${this.#failoverSeconds} s, and ${ordinarySeconds} s for an ordinary start`;
    assert(this.#failoverSeconds <= ordinaryStarts * ordinarySeconds, said);
    return `${said}; ${progressText(after)}`;
  }

  get #node(): MachineNode {
    return this.#cluster.node(this.#lost);
  }

  /** What of volumes the lost node still has mounted. */
  #mounts(): Promise<string> {
    return this.#node.guest.sh("grep -E 'kubernetes.io~csi|kubernetes.io/csi' /proc/self/mountinfo || :");
  }

  async #scale(replicas: 0 | 1): Promise<void> {
    await this.#cluster.api.patch(`${paths.statefulSets}/${set}`, { spec: { replicas } });
  }

  /** Waits until there is another pod of the name: every 20 s Kubernetes looks for pods of nodes that are out of service. */
  async #replaced(): Promise<void> {
    await until(`the pod ${pod} to be replaced`, async () => {
      const found = await this.#cluster.api.find<Pod>(`${paths.pods}/${pod}`);
      return found !== undefined && found.metadata.uid !== this.#uid;
    }, { limitSeconds, signal: this.#bench.signal, state: () => this.#work.trouble() });
  }

  /** Waits until all of the pod's volumes are attached to a node. */
  async #attachedAt(node: string): Promise<void> {
    await until(`the volumes to be attached to ${node}`, async () => {
      const attachments = await this.#work.attachments();
      const there = attachments.filter(({ spec, status }) => spec.nodeName === node && status?.attached);
      return there.length === Object.keys(claims).length;
    }, { limitSeconds: attachedLimitSeconds, signal: this.#bench.signal, state: () => this.#work.trouble() });
  }

  /** Waits until the pod runs at a node. */
  async #runsAt(node: string): Promise<void> {
    await until(`the pod ${pod} to be at ${node}`, async () => {
      const found = await this.#cluster.api.find<Pod>(`${paths.pods}/${pod}`);
      return found?.spec.nodeName === node;
    }, { limitSeconds, signal: this.#bench.signal, state: () => this.#work.trouble() });
    await this.#work.running(pod, limitSeconds);
  }

  /** Asserts that the pod has found what one before it had written by then, and that it writes on. */
  async #hasAll(before: readonly Progress[]): Promise<readonly Progress[]> {
    const after = await this.#writer.progress();
    for (const [index, { volume, writes }] of before.entries()) {
      const { found } = after[index]!;
      assert(found >= writes, `${volume}: after ${writes} writes ${found} were found`);
    }
    return after;
  }

  /** Digests of the volumes as the router has them. */
  async #digests(): Promise<readonly string[]> {
    const volumes = await Promise.all(
      Object.keys(claims).map((claim) => this.#work.bound(`${claim}-${pod}`)),
    );
    const files = await Promise.all(volumes.map((volume) => fileOnRouter(this.#cluster, volume)));
    return (await this.#cluster.router.sh('sha256sum "$@"', ...files)).trim().split("\n");
  }

  /** The digests, once they are twice the same: what was under way has come by then. */
  async #restingDigests(): Promise<readonly string[]> {
    let last = await this.#digests();
    return await until("the volumes to rest", async () => {
      const before = last;
      last = await this.#digests();
      return before.join() === last.join() && last;
    }, { limitSeconds: 120, everyMs: 1000, signal: this.#bench.signal });
  }
}
