import assert from "node:assert/strict";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { type Claim, claimOf, idle, paths, type Pod, podOf } from "../kit/objects.ts";
import { judged, type Steps, watchSteps } from "../kit/steps.ts";
import { Workload } from "../kit/workload.ts";

/** How often each way is gone, but that of the controllers, which takes a lease's time. */
const rounds = 10;
const controllerRounds = 5;
/** Longest that the median of each may take, in seconds: three times what was measured. */
const limits = { begin: 15, move: 15, controller: 45 };

/** How long pods wait for their volumes, and where the time goes. */
export const suite: Suite = {
  what: "medians of the time from claims to pods, from node to node, and from one controller to the other",
  limitMinutes: 10,
  alone: true,
  run: async (bench) => {
    const cluster = await bench.cluster({ nodes: { n1: "kubelet", n2: "kubelet.d" }, replicas: 2 });
    const moves = new Moves(bench, cluster);
    await bench.story([
      [`${rounds} claims get volumes and running pods`, () => moves.begin()],
      [`${rounds} pods are deleted and run at another node`, () => moves.move()],
      [`${controllerRounds} times the leading controller is killed`, () => moves.loseController()],
      ["everything can be deleted, and leaves nothing", () => moves.end()],
    ]);
  },
};

class Moves {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;
  readonly #names = Array.from({ length: rounds }, (_, index) => `data-${index}`);

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
  }

  async begin(): Promise<string> {
    const all: Steps[] = [];
    for (const name of this.#names) {
      const started = performance.now();
      await this.#work.create(
        paths.claims,
        claimOf(name, { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" }),
      );
      await this.#work.create(paths.pods, podAt(name, name, "n1"));
      all.push(
        await this.#watch(started, { bound: () => this.#isBound(name), ...this.#arrival(name, "n1") }),
      );
    }
    return judged(all, limits.begin);
  }

  async move(): Promise<string> {
    const all: Steps[] = [];
    for (const name of this.#names) {
      await this.#work.exec(name, `echo ${name} > /${name}/who; sync`);
      const started = performance.now();
      await this.#cluster.api.remove(`${paths.pods}/${name}`);
      await this.#work.create(paths.pods, podAt(`${name}-moved`, name, "n2"));
      all.push(
        await this.#watch(started, {
          "pod gone": async () => !(await this.#pods()).some(({ metadata }) => metadata.name === name),
          detached: async () => !await this.#isAttached(name, "n1"),
          ...this.#arrival(`${name}-moved`, "n2", name),
        }),
      );
      assert.equal(await this.#work.exec(`${name}-moved`, `cat /${name}/who`), name);
    }
    return judged(all, limits.move);
  }

  async loseController(): Promise<string> {
    const all: Steps[] = [];
    for (let round = 0; round < controllerRounds; round++) {
      const leader = await this.#cluster.findServing(this.#bench.signal);
      const others = this.#cluster.replicas.filter((one) => one !== leader);
      await leader.driver.kill();
      const started = performance.now();
      await this.#cluster.findServing(this.#bench.signal, others);
      all.push({ "other serves": (performance.now() - started) / 1000 });
      await leader.driver.start(this.#bench.signal);
    }
    return judged(all, limits.controller);
  }

  async end(): Promise<string> {
    await this.#work.remove(paths.pods, ...this.#names.map((name) => `${name}-moved`));
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.claims, ...this.#names);
    await this.#work.gone(paths.volumes);
    return await assertNothingLeft(this.#cluster, this.#bench.signal);
  }

  #arrival(pod: string, node: string, claim = pod): Record<string, () => Promise<boolean>> {
    return {
      attached: () => this.#isAttached(claim, node),
      running: async () =>
        (await this.#pods()).some(({ metadata, status }) =>
          metadata.name === pod && status.phase === "Running"
        ),
    };
  }

  #watch(started: number, steps: Readonly<Record<string, () => Promise<boolean>>>): Promise<Steps> {
    const trouble = () => this.#work.trouble();
    return watchSteps(started, steps, { limitSeconds: 120, signal: this.#bench.signal, trouble });
  }

  #pods(): Promise<readonly Pod[]> {
    return this.#cluster.api.list<Pod>(paths.pods);
  }

  async #isBound(name: string): Promise<boolean> {
    return (await this.#claim(name)).status.phase === "Bound";
  }

  #claim(name: string): Promise<Claim> {
    return this.#cluster.api.get<Claim>(`${paths.claims}/${name}`);
  }

  async #isAttached(claim: string, node: string): Promise<boolean> {
    const { spec } = await this.#claim(claim);
    return spec.volumeName !== undefined &&
      (await this.#work.attachments()).some((one) =>
        one.spec.source.persistentVolumeName === spec.volumeName && one.spec.nodeName === node &&
        one.status?.attached === true
      );
  }
}

/** A pod that uses a claim's file system at one node, whatever the scheduler thinks. */
function podAt(name: string, claim: string, nodeName: string): object {
  const pod = podOf(name, idle, { filesystems: [claim] }) as { spec: object };
  return { ...pod, spec: { ...pod.spec, nodeName } };
}
