import { isLong } from "../../support/long.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { paths } from "../kit/objects.ts";
import { judged, type Steps, watchSteps } from "../kit/steps.ts";
import { Writers } from "../kit/writers.ts";
import { Workload } from "../kit/workload.ts";

const podCount = 20;
/** How often a node is drained, and lost. */
const rounds = isLong ? 10 : 1;
/** Longest that a round may take, in seconds. */
const roundSeconds = 300;

/** How many times as long as was measured the median of ten rounds may take, and a single one. */
const tolerance = isLong ? 4 / 3 : 3;

/** The medians that were measured until all pods ran, in seconds. */
interface Measured {
  readonly drained: number;
  readonly lost: number;
}

/** How long the pods of a node wait for their volumes where a profile says that exports end at once. */
export const suite: Suite = nodeMoves("", {}, { drained: 11.4, lost: 17.1 });

/** The same without a profile, so that every volume waits for the time that exports may linger. */
export const withoutProfile: Suite = nodeMoves(" without a profile", { withoutProfile: true }, {
  drained: 30.5,
  lost: 34.0,
});

function nodeMoves(where: string, chart: { readonly withoutProfile?: true }, measured: Measured): Suite {
  return {
    what: `medians of the time that ${podCount} pods of a drained and of a lost node wait${where}`,
    limitMinutes: isLong ? 60 : 15,
    alone: true,
    run: async (bench) => {
      const cluster = await bench.cluster({ nodes: { n1: "kubelet", n2: "kubelet.d" }, chart });
      const moves = new NodeMoves(bench, cluster);
      await bench.story([
        [`${podCount} pods run at one node and write`, () => moves.begin()],
        [`${rounds} times their node is drained`, () => moves.drain(measured.drained * tolerance)],
        [`${rounds} times their node is lost, and tainted`, () => moves.lose(measured.lost * tolerance)],
        ["everything can be deleted, and leaves nothing", () => moves.end()],
      ]);
    },
  };
}

class NodeMoves {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #writers: Writers;
  readonly #work: Workload;
  /** Where the pods are, and where they go next. */
  #from = "n1";
  #to = "n2";

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#writers = new Writers(cluster, podCount, bench.signal);
    this.#work = new Workload(cluster, bench.signal);
  }

  async begin(): Promise<string> {
    await this.#writers.cordon(this.#to, true);
    const started = performance.now();
    await this.#writers.create();
    return judged([await this.#watch(started, this.#arrival(this.#from))], roundSeconds);
  }

  async drain(limitSeconds: number): Promise<string> {
    const all: Steps[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = await this.#writers.progress();
      await this.#writers.cordon(this.#to, false);
      await this.#writers.cordon(this.#from, true);
      const started = performance.now();
      await this.#writers.evict();
      all.push(await this.#watch(started, this.#departure()));
      await this.#arrived(before);
      await this.#writers.assertLeft(this.#to);
    }
    return judged(all, limitSeconds);
  }

  /** The time counts from the taint: how long a cluster takes to miss a node is not the driver's. */
  async lose(limitSeconds: number): Promise<string> {
    const all: Steps[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = await this.#writers.progress();
      const lost = this.#from;
      await this.#cluster.node(lost).cutPower(this.#cluster.router.backing);
      await this.#work.notReady(lost);
      await this.#writers.cordon(this.#to, false);
      const started = performance.now();
      await this.#work.setOutOfService(lost);
      all.push(await this.#watch(started, this.#departure()));
      await this.#arrived(before);
      const untainted = { spec: { unschedulable: true, taints: null } };
      await this.#cluster.api.patch(`${paths.nodes}/${lost}`, untainted);
      await this.#cluster.node(lost).start(this.#bench.signal);
      await this.#writers.assertLeft(lost);
    }
    return judged(all, limitSeconds);
  }

  async end(): Promise<string> {
    await this.#writers.remove();
    return await assertNothingLeft(this.#cluster, this.#bench.signal);
  }

  /** All pods have found at the other node what they wrote last, and go back from there in the next round. */
  async #arrived(before: readonly number[]): Promise<void> {
    await this.#writers.compare(before);
    [this.#from, this.#to] = [this.#to, this.#from];
  }

  #departure(): Record<string, () => Promise<boolean>> {
    const from = this.#from;
    return {
      "all detached": async () =>
        (await this.#work.attachments()).every(({ spec }) => spec.nodeName !== from),
      ...this.#arrival(this.#to),
    };
  }

  #arrival(node: string): Record<string, () => Promise<boolean>> {
    const run = async () =>
      (await this.#writers.pods()).filter(({ metadata, spec, status }) =>
        spec.nodeName === node && status.phase === "Running" && metadata.deletionTimestamp === undefined
      ).length;
    return {
      "first runs": async () => await run() >= 1,
      "half run": async () => await run() >= podCount / 2,
      "all run": async () => await run() === podCount,
    };
  }

  #watch(started: number, steps: Readonly<Record<string, () => Promise<boolean>>>): Promise<Steps> {
    const trouble = () => this.#work.trouble();
    return watchSteps(started, steps, {
      limitSeconds: roundSeconds,
      signal: this.#bench.signal,
      trouble,
    });
  }
}
