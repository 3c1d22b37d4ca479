import assert from "node:assert/strict";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { paths } from "../kit/objects.ts";
import { secondsSince } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";
import { identities, Writers } from "../kit/writers.ts";

const podCount = 5;
/** How long a person waits for the pods after saying that their node is gone, in seconds. */
const promisedSeconds = 60;

/** A node that does not come back by itself. */
export const suite: Suite = {
  what: `a node loses power for good, its ${podCount} pods go on at another one, and then it returns`,
  limitMinutes: 15,
  run: async (bench) => {
    const cluster = await bench.cluster({ nodes: { n1: "kubelet", n2: "kubelet.d" } });
    const failover = new Failover(bench, cluster);
    await bench.story([
      ["pods run at one node and write, and it is switched off", () => failover.begin()],
      [`within ${promisedSeconds} s of the taint they run at the other, with what they wrote last`, () => {
        return failover.taint();
      }],
      ["the node that returns puts away what it had of them, and disturbs none", () => failover.comeBack()],
      ["everything can be deleted, and leaves nothing", async () => {
        await failover.writers.remove();
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

class Failover {
  readonly writers: Writers;
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;
  #written: readonly number[] = [];

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
    this.writers = new Writers(cluster, podCount, bench.signal);
  }

  async begin(): Promise<string> {
    await this.writers.cordon("n2", true);
    await this.writers.create();
    await this.writers.runAt("n1");
    this.#written = await this.writers.progress();
    await this.#cluster.node("n1").cutPower(this.#cluster.router.backing);
    const started = performance.now();
    await this.#work.notReady("n1");
    return `it counts as gone after ${secondsSince(started)} s`;
  }

  async taint(): Promise<string> {
    await this.writers.cordon("n2", false);
    await this.#work.setOutOfService("n1");
    const started = performance.now();
    await this.writers.runAt("n2");
    const seconds = secondsSince(started);
    await this.writers.compare(this.#written);
    assert(Number(seconds) < promisedSeconds, `it took ${seconds} s`);
    return `after ${seconds} s`;
  }

  async comeBack(): Promise<string> {
    const before = identities(await this.writers.pods());
    // A person takes the taint away who has seen the node come back; new pods are not for it yet.
    await this.#cluster.api.patch(`${paths.nodes}/n1`, { spec: { unschedulable: true, taints: null } });
    const node = this.#cluster.node("n1");
    await node.start(this.#bench.signal);
    const reported = await this.writers.assertLeft("n1");
    await this.writers.progress();
    assert.deepEqual(identities(await this.writers.pods()), before);
    return reported;
  }
}
