import assert from "node:assert/strict";
import { canGrowExt4Online } from "../../../src/cli/demo/scratch.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster, ClusterOptions } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import {
  claimOf,
  idle,
  paths,
  podOf,
  snapshotOf,
  type Source,
  type Volume,
  type VolumeMode,
} from "../kit/objects.ts";
import { allShown, leaseHolder, shownOn } from "../kit/attachments.ts";
import { uses, Workload } from "../kit/workload.ts";

/** Everything that claims can ask of the driver, one after the other. */
export const suite: Suite = {
  what: "claims of file systems and of raw blocks, from their first pod to their deletion",
  limitMinutes: 15,
  run: (bench) => run(bench, {}),
};

/** The same with the oldest Kubernetes that registers the driver by itself. */
export const oldestSuite: Suite = {
  what: "the same with the oldest Kubernetes that registers the driver by itself",
  limitMinutes: 45,
  run: (bench) => run(bench, { kubernetes: "1.29" }),
};

async function run(bench: Bench, options: Pick<ClusterOptions, "kubernetes">): Promise<void> {
  const cluster = await bench.cluster({ nodes: { n1: "kubelet" }, ...options });
  const life = new Life(bench, cluster);
  await bench.story([
    ["pods with a file system, a second kind of it, and a raw block volume run", () => life.begin()],
    ["the volumes' objects say who has them, and a Lease who looks after them", () => life.check()],
    ["what a pod wrote is there for the pod after it", () => life.goOn()],
    ["volumes grow under their pods", () => life.expand()],
    ["a snapshot holds what was written before it, and is restored from", () => life.restore()],
    ["a clone holds what its source does, and is a volume of its own", () => life.clone()],
    ["with their claims all volumes go, and leave nothing", async () => {
      await life.end();
      return await assertNothingLeft(cluster, bench.signal);
    }],
  ]);
}

/** The claims of the suite: two file systems and a raw block volume, with one pod for all. */
class Life {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;
  /** The file system that can be grown while it is mounted: without CAP_SYS_RESOURCE that is xfs only. */
  readonly #growing: "ext4" | "xfs" = canGrowExt4Online() ? "ext4" : "xfs";
  /** The other one. */
  readonly #same: "ext4" | "xfs" = canGrowExt4Online() ? "xfs" : "ext4";

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
  }

  async begin(): Promise<string> {
    for (const kind of ["ext4", "xfs"] as const) await this.#claim(kind, "Filesystem", kind);
    await this.#claim("raw", "Block", "ext4");
    await this.#pod("first");
    await this.#work.exec("first", "for f in ext4 xfs; do echo $f >/$f/data; done; sync");
    await this.#work.exec("first", `${writeBlock("one", 0)}; ${writeBlock("two", 1000)}`);
    const mounts = await this.#work.exec("first", "grep -E ' /(ext4|xfs) ' /proc/mounts | cut -d' ' -f2,3");
    assert.equal(mounts, "/ext4 ext4\n/xfs xfs");
    return mounts.replaceAll("\n", ", ");
  }

  async check(): Promise<string> {
    const { signal } = this.#bench;
    assert.equal(await allShown(this.#cluster, signal), 3);
    const shown = shownOn(await this.#volume("raw"));
    assert.equal(shown.node, "n1");
    return `${shown.node} since ${shown.since}, readonly ${shown.readOnly}; ${await leaseHolder(
      this.#cluster,
      signal,
    )}`;
  }

  async goOn(): Promise<string> {
    await this.#work.remove(paths.pods, "first");
    await this.#work.gone(paths.attachments);
    assert.equal(await allShown(this.#cluster, this.#bench.signal), 0);
    await this.#pod("second");
    assert.equal(await this.#work.exec("second", "cat /ext4/data /xfs/data"), "ext4\nxfs");
    assert.equal(await this.#readBlock("second", "raw", 0), "one");
    assert.equal(await this.#readBlock("second", "raw", 1000), "two");
    return "detached and attached in between";
  }

  async expand(): Promise<string> {
    const before = await this.#sizes("second");
    await Promise.all([this.#work.expand(this.#growing, 2048), this.#work.expand("raw", 2048)]);
    const after = await this.#sizes("second");
    assert(after.filesystem > before.filesystem * 1.8, `${before.filesystem} has become ${after.filesystem}`);
    assert.equal(after.device, 2 * 2 ** 30);
    assert.equal(await this.#readBlock("second", "raw", 1000), "two");
    return `${this.#growing} from ${before.filesystem} to ${after.filesystem} KiB, raw to ${after.device} bytes`;
  }

  async restore(): Promise<string> {
    await this.#work.exec("second", "sync");
    for (const claim of [this.#growing, "raw"]) {
      await this.#work.create(paths.snapshots, snapshotOf(`${claim}-snapshot`, claim));
    }
    for (const claim of [this.#growing, "raw"]) await this.#work.snapshotReady(`${claim}-snapshot`);
    await this.#work.exec("second", `echo later >/${this.#growing}/data; sync; ${writeBlock("later", 0)}`);
    const from = (claim: string): Source => ({ kind: "VolumeSnapshot", name: `${claim}-snapshot` });
    // Larger than its source: the file system grows at its first use.
    await this.#claim("restored", "Filesystem", this.#growing, {
      mebibytes: 3072,
      source: from(this.#growing),
    });
    await this.#claim("restored-raw", "Block", "ext4", { mebibytes: 2048, source: from("raw") });
    await this.#work.create(paths.pods, podOf("third", idle, both("restored", "restored-raw")));
    await this.#work.running("third");
    assert.equal(await this.#work.exec("third", "cat /restored/data"), this.#growing);
    const size = await this.#filesystemSize("third", "restored");
    assert(size > 2.8 * 2 ** 20, `${size} KiB of 3 GiB`);
    assert.equal(await this.#readBlock("third", "restored-raw", 0), "one");
    assert.equal(await this.#work.exec("second", `cat /${this.#growing}/data`), "later");
    return "restored as it was, into a larger one too, while its source went on";
  }

  async clone(): Promise<string> {
    const from = (name: string): Source => ({ kind: "PersistentVolumeClaim", name });
    await this.#claim("cloned", "Filesystem", this.#same, { mebibytes: 1024, source: from(this.#same) });
    await this.#claim("cloned-raw", "Block", "ext4", { mebibytes: 2048, source: from("raw") });
    await this.#work.create(paths.pods, podOf("fourth", idle, both("cloned", "cloned-raw")));
    await this.#work.running("fourth");
    assert.equal(await this.#work.exec("fourth", "cat /cloned/data"), this.#same);
    assert.equal(await this.#readBlock("fourth", "cloned-raw", 0), "later");
    await this.#work.exec("fourth", "echo clone >/cloned/data; sync");
    assert.equal(await this.#work.exec("second", `cat /${this.#same}/data`), this.#same);
    return `${this.#same} and a raw block volume, cloned in use`;
  }

  async #volume(claim: string): Promise<Volume> {
    return await this.#cluster.api.get<Volume>(`${paths.volumes}/${await this.#work.bound(claim)}`);
  }

  async end(): Promise<void> {
    await this.#work.remove(paths.pods, "first", "second", "third", "fourth");
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.snapshots, `${this.#growing}-snapshot`, "raw-snapshot");
    await this.#work.gone(paths.snapshotContents);
    const claims = ["ext4", "xfs", "raw", "restored", "restored-raw", "cloned", "cloned-raw"];
    await this.#work.remove(paths.claims, ...claims);
    await this.#work.gone(paths.volumes);
  }

  async #claim(
    name: string,
    mode: VolumeMode,
    kind: string,
    what: { readonly mebibytes: number; readonly source?: Source } = { mebibytes: 1024 },
  ): Promise<void> {
    await this.#work.create(paths.claims, claimOf(name, { mode, storageClass: `rds-${kind}`, ...what }));
    await this.#work.bound(name);
  }

  async #pod(name: string): Promise<void> {
    await this.#work.create(
      paths.pods,
      podOf(name, idle, { filesystems: ["ext4", "xfs"], devices: ["raw"] }),
    );
    const started = performance.now();
    const node = await this.#work.running(name);
    this.#bench.report.say(`${name} runs at ${node} after ${Math.round(performance.now() - started)} ms`);
  }

  async #sizes(pod: string): Promise<{ filesystem: number; device: number }> {
    const device = await this.#work.exec(pod, "blockdev --getsize64 /dev/raw");
    return { filesystem: await this.#filesystemSize(pod, this.#growing), device: Number(device) };
  }

  /** In KiB. */
  async #filesystemSize(pod: string, claim: string): Promise<number> {
    return Number(await this.#work.exec(pod, `df -k /${claim} | tail -n 1 | tr -s ' ' | cut -d' ' -f2`));
  }

  async #readBlock(pod: string, device: string, megabyte: number): Promise<string> {
    const read = `dd if=/dev/${device} bs=1M skip=${megabyte} count=1 2>/dev/null | head -n 1`;
    return await this.#work.exec(pod, read);
  }
}

/** A script that writes a line to the raw volume, past the page cache's good will. */
function writeBlock(text: string, megabyte: number): string {
  return `echo ${text} | dd of=/dev/raw bs=1M seek=${megabyte} conv=notrunc,fsync 2>/dev/null`;
}

function both(filesystem: string, device: string) {
  return { ...uses("Filesystem", filesystem), ...uses("Block", device) };
}
