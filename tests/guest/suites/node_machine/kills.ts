import assert from "node:assert/strict";
import { driverName } from "../../../cluster/kit/driver.ts";
import { claimOf, idle, paths, podOf, type Wish } from "../../../cluster/kit/objects.ts";
import { secondsSince, until } from "../../../cluster/kit/waiting.ts";
import { uses, Workload } from "../../../cluster/kit/workload.ts";
import type { Bench } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { driverOf, podsPath, releaseReady } from "../../machine/release.ts";
import { type Point, type Sight, stopAt } from "../../machine/slow_motion.ts";
import { assertNothingLeft } from "./nothing_left.ts";
import { attached, startSeconds } from "./one_pod_set.ts";
import type { Steps } from "./on_machines.ts";
import { assertWholeXfs, digestInExt4, digestOf, fileOnRouter } from "./router_files.ts";

const stateFolder = `/var/lib/kubelet/plugins/${driverName}/state`;

/** The volume of a round. */
const wishes = {
  ext4: { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" },
  xfs: { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-xfs" },
  raw: { mode: "Block", mebibytes: 1024, storageClass: "rds-block" },
} as const satisfies Readonly<Record<string, Wish>>;

/** A fresh volume, for whose first and second pod the driver is killed. */
interface Round {
  readonly kind: keyof typeof wishes;
  readonly first: Point;
  readonly second: Point;
  /** Whether the second pod is deleted once the driver is killed: the kubelet has to undo what it does not know. */
  readonly givesUp?: boolean;
}

const rounds: readonly Round[] = [
  { kind: "ext4", first: "while blkid looks", second: "before it connects" },
  { kind: "ext4", first: "while mkfs writes", second: "while e2fsck runs" },
  { kind: "ext4", first: "between mkfs and mount", second: "when it has mounted", givesUp: true },
  { kind: "xfs", first: "while mount runs", second: "before it binds" },
  { kind: "raw", first: "when it has connected", second: "when it has bound", givesUp: true },
];

/** How much known data, in MiB. */
const dataMebibytes = 4;

/** SIGKILL of a node's driver while it stages a volume for a pod, under a kubelet. */
export class MachineKills {
  readonly #bench: Bench;
  readonly #cluster: MachineCluster;
  readonly #name: string;
  readonly #work: Workload;
  /** The round's file system, as the router has it. */
  #filesystem = "";
  /** The digest of the round's known data. */
  #sum = "";

  constructor(bench: Bench, cluster: MachineCluster, node: string) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#name = node;
    this.#work = new Workload(cluster, bench.signal);
  }

  /** The steps, in their order. */
  steps(): Steps {
    return rounds.flatMap((round, index): Steps => {
      const name = `${round.kind}-${index + 1}`;
      const then = round.givesUp === true ? "its pod is deleted, and the next one" : "its pod";
      return [
        [`${name}, blank: killed ${round.first}, its pod runs and writes`, () => this.first(name, round)],
        [`${name}, with data: killed ${round.second}, ${then} finds it`, () => this.second(name, round)],
      ];
    });
  }

  /** A fresh volume. */
  async first(name: string, { kind, first }: Round): Promise<string> {
    await this.#renewDriver();
    await this.#work.create(paths.claims, claimOf(name, wishes[kind]));
    await this.#work.bound(name);
    const { sight, before, seconds } = await this.#killAt(first, name, kind, () => this.#runs(name));
    const known = `bs=1M count=${dataMebibytes} conv=fsync`;
    await this.#work.exec(name, `dd if=/dev/urandom of=${dataOf(name, kind)} ${known}`);
    this.#sum = await this.#sumIn(name, kind);
    this.#filesystem = await this.#onRouter(name);
    if (kind !== "raw") assert.match(this.#filesystem, new RegExp(`^[0-9a-f-]{36} ${kind}$`));
    if (sight.mkfs === "done") assert.equal(this.#filesystem, before, "it was formatted again");
    await this.#leave(name);
    return `seen ${sight.text}; driver and pod run ${seconds} s later`;
  }

  /** The same volume, which has data now. */
  async second(name: string, { kind, second, givesUp = false }: Round): Promise<string> {
    const goOn = () => givesUp ? this.#leave(name) : this.#runs(name);
    const { sight, before, seconds } = await this.#killAt(second, name, kind, goOn);
    if (givesUp) {
      await this.#startPod(name, kind);
      await this.#runs(name);
    }
    assert.equal(await this.#sumIn(name, kind), this.#sum);
    if (kind !== "raw") {
      for (const now of [before, await this.#onRouter(name)]) {
        assert.equal(now, this.#filesystem, "it was formatted again");
      }
    }
    await this.#leave(name);
    await this.#assertWhole(name, kind);
    await this.#work.remove(paths.claims, name);
    await this.#work.gone(paths.volumes);
    await assertNothingLeft(this.#cluster, this.#bench.signal);
    const then = givesUp ? "the driver runs and the pod is gone" : "driver and pod run";
    return `seen ${sight.text}; ${then} ${seconds} s later`;
  }

  /** Starts a pod, kills the driver's container at a point on the way, and goes on; the container is back when this ends. */
  async #killAt(
    point: Point,
    name: string,
    kind: Round["kind"],
    goOn: () => Promise<void>,
  ): Promise<{ readonly sight: Sight; readonly before: string; readonly seconds: string }> {
    const { guest, runtime } = this.#cluster.node(this.#name);
    const { id, restarts } = await driverOf(this.#cluster, this.#name);
    const sight = await stopAt(guest, id, point, stateFolder, () => this.#startPod(name, kind));
    const before = await this.#onRouter(name);
    const started = performance.now();
    await runtime.kill(id);
    const isBack = until("the driver's container to be back", async () => {
      const driver = await driverOf(this.#cluster, this.#name);
      return driver.ready && driver.id !== id && driver.restarts > restarts;
    }, {
      limitSeconds: startSeconds,
      everyMs: 500,
      signal: this.#bench.signal,
      state: () => this.#work.trouble(),
    });
    await Promise.all([isBack, goOn()]);
    return { sight, before, seconds: secondsSince(started) };
  }

  async #runs(name: string): Promise<void> {
    await this.#work.running(name, startSeconds);
  }

  async #startPod(name: string, kind: Round["kind"]): Promise<void> {
    await this.#work.create(paths.pods, podOf(name, idle, uses(wishes[kind].mode, name)));
  }

  /** Deletes the pod; its volume has left the node when this ends. */
  async #leave(name: string): Promise<void> {
    await this.#cluster.api.remove(`${paths.pods}/${name}`);
    await attached(this.#work, 0, this.#bench.signal);
    await this.#work.gone(paths.pods);
  }

  /**
   * Replaces the driver's pod, as a person would: a kubelet starts a container again at once after its first end, 10 seconds
   * after its second one, and then ever later. So a pod is killed twice at most.
   */
  async #renewDriver(): Promise<void> {
    const { pod, restarts } = await driverOf(this.#cluster, this.#name);
    if (restarts === 0) return;
    await this.#cluster.api.remove(`${podsPath}/${pod}`);
    await this.#work.gone(podsPath, ({ metadata }) => metadata.name === pod, pod);
    await releaseReady(this.#cluster, this.#bench.signal);
  }

  async #sumIn(name: string, kind: Round["kind"]): Promise<string> {
    const read = `dd if=${dataOf(name, kind)} bs=1M count=${dataMebibytes} iflag=direct 2>/dev/null`;
    return await this.#work.exec(name, `${read} | sha256sum | cut -d' ' -f1`);
  }

  /** UUID and type of the file system that the router's file has; "" where it has none. */
  async #onRouter(name: string): Promise<string> {
    const script = 'blkid -p -o value -s UUID -s TYPE "$1" | paste -s -d " "';
    return (await this.#cluster.router.sh(script, await this.#file(name))).trim();
  }

  async #file(name: string): Promise<string> {
    return await fileOnRouter(this.#cluster, await this.#work.bound(name));
  }

  /** Asserts that the router's file, which no node has, is whole and has the known data. */
  async #assertWhole(name: string, kind: Round["kind"]): Promise<void> {
    const { router } = this.#cluster;
    const file = await this.#file(name);
    if (kind === "ext4") assert.equal(await digestInExt4(router, file, "/data"), this.#sum);
    if (kind === "xfs") await assertWholeXfs(router, file);
    if (kind === "raw") assert.equal(await digestOf(router, file, 0, dataMebibytes), this.#sum);
  }
}

/** Where a pod has the known data. */
function dataOf(name: string, kind: Round["kind"]): string {
  return kind === "raw" ? `/dev/${name}` : `/${name}/data`;
}
