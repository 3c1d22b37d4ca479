import assert from "node:assert/strict";
import { driverName } from "../../../cluster/kit/driver.ts";
import {
  claimOf,
  idle,
  paths,
  type Pod,
  podOf,
  snapshotOf,
  statefulSetOf,
  type Wish,
} from "../../../cluster/kit/objects.ts";
import { pause, secondsSince, until } from "../../../cluster/kit/waiting.ts";
import { Workload } from "../../../cluster/kit/workload.ts";
import type { Bench } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import type { MachineNode } from "../../machine/node.ts";
import { driverOf, releaseReady, upgradeChart } from "../../machine/release.ts";
import { assertNothingLeft } from "./nothing_left.ts";
import { OnePodSet, startSeconds } from "./one_pod_set.ts";
import type { Steps } from "./on_machines.ts";
import { assertWholeXfs, digestInExt4, digestOf, fileOnRouter } from "./router_files.ts";
import { type Progress, progressText, slowestMs, WritingPod, writingTo } from "./writing.ts";

/** How long the router is away when it reboots, in seconds. */
const downSeconds = 15;

/** Volumes, what is written to them all the time, and where known data lies on them. */
const kinds = ["ext4", "xfs", "raw"] as const;
const claims: Readonly<Record<typeof kinds[number], Wish>> = {
  ext4: { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" },
  xfs: { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-xfs" },
  raw: { mode: "Block", mebibytes: 1024, storageClass: "rds-block" },
};
const targets = { ext4: "/ext4/counter", xfs: "/xfs/counter", raw: "/dev/raw" };
const dataPaths = ["/ext4/data", "/xfs/data", "/dev/raw"];
/** How much known data, in MiB, and where on the raw block volume. */
const [dataMebibytes, rawOffsetMebibytes] = [4, 16];

/** A volume below which a device layer is, the claim and the pod of the same name. */
const layered = "layered";
const layeredClass = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "rds-layered" },
  provisioner: driverName,
  parameters: { "csi.storage.k8s.io/fstype": "ext4", deviceLayer: "multipath" },
};

/** One whole life of volumes on a node: a pod that writes to all kinds of them, and what befalls it. */
export class MachineLife {
  readonly #bench: Bench;
  readonly #cluster: MachineCluster;
  readonly #name: string;
  readonly #work: Workload;
  readonly #set: OnePodSet;
  readonly #writer: WritingPod;
  /** Digests of the known data, in the order of the kinds. */
  #sums: readonly string[] = [];

  constructor(bench: Bench, cluster: MachineCluster, node: string) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#name = node;
    this.#work = new Workload(cluster, bench.signal);
    this.#set = new OnePodSet("app", cluster, this.#work, bench.signal);
    this.#writer = new WritingPod(this.#set.pod, targets, this.#work, bench.signal);
  }

  /** The steps, in their order. */
  steps(): Steps {
    return [
      ...this.#beginning(),
      ["the node's driver is killed, then the kubelet, and the pod writes on", () => this.kill()],
      ["the driver's image is upgraded, and the pod writes on", () => this.upgrade()],
      this.#interruption(),
      ["the router reboots and keeps identities: writes wait, none fails", () => this.rebootRouter()],
      ["the router reboots with new identities, and the next pod finds everything", () => {
        return this.loseIdentities();
      }],
      ["the node loses power, and its pod finds everything when it is back", () => this.rebootNode()],
      ["below a device layer writes also wait for new identities, none fails", () => this.rebootBelowLayer()],
      this.#ending(),
    ];
  }

  /** The steps of a life in which all goes well. */
  shortSteps(): Steps {
    return [...this.#beginning(), this.#interruption(), this.#ending()];
  }

  #beginning(): Steps {
    return [
      ["a pod writes to an ext4, an xfs and a raw block volume, over NVMe/TCP", () => this.begin()],
      ["the ext4 volume grows under the pod that writes to it", () => this.grow()],
      ["a snapshot is restored, and volumes in use are cloned, with the same data", () => this.copy()],
    ];
  }

  #interruption(): Steps[number] {
    return [
      "without its pod the volumes leave the node, and the router and the next pod have the data",
      () => {
        return this.leaveAndReturn();
      },
    ];
  }

  #ending(): Steps[number] {
    return ["with their claims all volumes go, and leave nothing", () => this.end()];
  }

  async begin(): Promise<string> {
    const started = performance.now();
    await this.#work.create(paths.statefulSets, statefulSetOf(this.#set.name, 1, writingTo(targets), claims));
    await this.#set.runs();
    const seconds = secondsSince(started);
    const [ext4, xfs, raw] = dataPaths;
    await this.#writer.exec(
      `${noise(`${ext4}`)}; ${noise(`${xfs}`)}; ${noise(`${raw}`, rawOffsetMebibytes)}`,
    );
    this.#sums = await this.#sumsIn(this.#set.pod, dataPaths);
    const mounts = await this.#writer.exec("grep -E ' /(ext4|xfs) ' /proc/mounts | cut -d' ' -f2,3");
    assert.equal(mounts, "/ext4 ext4\n/xfs xfs");
    const connections = await this.#onNode("cat /sys/class/nvme/nvme*/transport /sys/class/nvme/nvme*/state");
    assert.deepEqual(connections.split("\n"), [...kinds.map(() => "tcp"), ...kinds.map(() => "live")]);
    assert.equal(await this.#rawOnRouter(), this.#sums[2]);
    return `it runs after ${seconds} s, ${kinds.length} connections; ${await this.#writesOn()}`;
  }

  async grow(): Promise<string> {
    const size = () => this.#writer.exec("df -k /ext4 | tail -n 1 | tr -s ' ' | cut -d' ' -f2").then(Number);
    const before = await size();
    const started = performance.now();
    await this.#work.expand(this.#set.claim("ext4"), 2048);
    const seconds = secondsSince(started);
    const after = await size();
    assert(after > before * 1.8, `${before} KiB have become ${after}`);
    assert.deepEqual(await this.#sumsIn(this.#set.pod, dataPaths), this.#sums);
    return `from ${before} to ${after} KiB after ${seconds} s; ${await this.#writesOn()}`;
  }

  async copy(): Promise<string> {
    const started = performance.now();
    await this.#work.create(paths.snapshots, snapshotOf("then", this.#set.claim("ext4")));
    await this.#work.snapshotReady("then");
    await this.#writer.exec("mv /ext4/data /ext4/moved && sync");
    const cloneOf = (kind: typeof kinds[number]): Wish => ({
      ...claims[kind],
      source: { kind: "PersistentVolumeClaim", name: this.#set.claim(kind) },
    });
    const restored = { ...claims.ext4, mebibytes: 2048 };
    const copies: Readonly<Record<string, Wish>> = {
      restored: { ...restored, source: { kind: "VolumeSnapshot", name: "then" } },
      cloned: cloneOf("xfs"),
      "cloned-raw": cloneOf("raw"),
    };
    for (const [name, wish] of Object.entries(copies)) {
      await this.#work.create(paths.claims, claimOf(name, wish));
    }
    const uses = { filesystems: ["restored", "cloned"], devices: ["cloned-raw"] };
    await this.#work.create(paths.pods, podOf("copies", idle, uses));
    await this.#work.running("copies", startSeconds);
    const seconds = secondsSince(started);
    const copied = await this.#sumsIn("copies", ["/restored/data", "/cloned/data", "/dev/cloned-raw"]);
    assert.deepEqual(copied, this.#sums);
    await this.#work.remove(paths.pods, "copies");
    // A kubelet that is killed before it has unstaged them forgets them: docs/internals/fencing.md.
    await this.#set.attached(kinds.length);
    await this.#work.remove(paths.claims, ...Object.keys(copies));
    await this.#work.remove(paths.snapshots, "then");
    await this.#writer.exec("mv /ext4/moved /ext4/data && sync");
    return `a pod has the three copies after ${seconds} s; ${await this.#writesOn()}`;
  }

  async kill(): Promise<string> {
    const { runtime, kubelet } = this.#node;
    const { id, restarts } = await driverOf(this.#cluster, this.#name);
    await this.#writer.forget();
    const started = performance.now();
    await runtime.kill(id);
    await this.#writesOn();
    await until("the driver's container to be back", async () => {
      const driver = await driverOf(this.#cluster, this.#name);
      return driver.ready && driver.restarts === restarts + 1;
    }, { limitSeconds: startSeconds, everyMs: 500, signal: this.#bench.signal });
    const seconds = secondsSince(started);
    await kubelet.kill();
    await this.#writesOn();
    await kubelet.start(this.#bench.signal);
    return `the container is back after ${seconds} s; ${await this.#writesOn(Number(seconds))}`;
  }

  async upgrade(): Promise<string> {
    await this.#writer.forget();
    const started = performance.now();
    await upgradeChart(this.#cluster, "next");
    await releaseReady(this.#cluster, this.#bench.signal, "next");
    const seconds = secondsSince(started);
    return `all pods have the other tag after ${seconds} s; ${await this.#writesOn(Number(seconds))}`;
  }

  async leaveAndReturn(): Promise<string> {
    const before = await this.#writer.progress();
    await this.#set.scale(0);
    assert.equal(await this.#onNode("ls /sys/class/nvme"), "");
    const [ext4, xfs] = [await this.#onRouter("ext4"), await this.#onRouter("xfs")];
    await assertWholeXfs(this.#cluster.router, xfs);
    assert.equal(await digestInExt4(this.#cluster.router, ext4, "/data"), this.#sums[0]);
    assert.equal(await this.#rawOnRouter(), this.#sums[2]);
    const started = performance.now();
    await this.#set.scale(1);
    const seconds = secondsSince(started);
    const after = await this.#hasAll(before);
    return `whole file systems on the router, a next pod after ${seconds} s; ${progressText(after)}`;
  }

  async rebootRouter(): Promise<string> {
    await this.#writer.forget();
    await this.#reboot("kept");
    const said = await this.#waited(this.#writer);
    assert.deepEqual(await this.#sumsIn(this.#set.pod, dataPaths), this.#sums);
    return said;
  }

  /**
   * As a person does it whose pods have lost their volumes: docs/guides/disaster.md. The next pod waits already, as that of a
   * Deployment does: the kubelet unstages nothing in between.
   */
  async loseIdentities(): Promise<string> {
    const before = await this.#writer.progress();
    await this.#reboot("new");
    await this.#writer.failed();
    const [ext4, xfs, raw] = kinds.map((kind) => this.#set.claim(kind)) as [string, string, string];
    await this.#work.create(paths.pods, podOf("next", idle, { filesystems: [ext4, xfs], devices: [raw] }));
    await until("a pod beside the dead one to be refused", async () => {
      return (await this.#work.eventsAbout("next")).includes("delete the pods of this node that have it");
    }, {
      limitSeconds: startSeconds,
      signal: this.#bench.signal,
      state: () => this.#work.eventsAbout("next"),
    });
    const started = performance.now();
    await this.#cluster.api.patch(`${paths.statefulSets}/${this.#set.name}`, { spec: { replicas: 0 } });
    await this.#work.running("next", startSeconds);
    const seconds = secondsSince(started);
    const found = await this.#sumsIn("next", [`/${ext4}/data`, `/${xfs}/data`, `/dev/${raw}`]);
    assert.deepEqual(found, this.#sums);
    await this.#work.remove(paths.pods, "next");
    await this.#set.scale(1);
    return `its writes failed; the next pod runs after ${seconds} s; ${
      progressText(await this.#hasAll(before))
    }`;
  }

  async rebootNode(): Promise<string> {
    const before = await this.#writer.progress();
    const { containerId } = await this.#container();
    const started = performance.now();
    await this.#node.guest.cutPower();
    await this.#node.guest.boot();
    await this.#node.start(this.#bench.signal);
    await until("the pod to run again", async () => {
      const now = await this.#container();
      return now.isReady && now.containerId !== containerId;
    }, {
      limitSeconds: startSeconds,
      everyMs: 500,
      signal: this.#bench.signal,
      state: () => this.#work.trouble(),
    });
    const seconds = secondsSince(started);
    const after = await this.#hasAll(before);
    return `the pod runs again after ${seconds} s; ${progressText(after)}`;
  }

  async rebootBelowLayer(): Promise<string> {
    await this.#set.scale(0);
    await this.#work.create(paths.classes, layeredClass);
    const wish = { ...claims.ext4, storageClass: layeredClass.metadata.name };
    await this.#work.create(paths.claims, claimOf(layered, wish));
    const target = { [layered]: `/${layered}/counter` };
    await this.#work.create(paths.pods, podOf(layered, writingTo(target), { filesystems: [layered] }));
    await this.#work.running(layered, startSeconds);
    const writer = new WritingPod(layered, target, this.#work, this.#bench.signal);
    await writer.exec(noise(`/${layered}/data`));
    const sum = await writer.exec(`sha256sum </${layered}/data`);
    assert.match(await this.#onNode("dmsetup ls"), /^rds-csi-\S+\s+\(\d+:\d+\)$/);
    await writer.forget();
    await this.#reboot("new");
    const said = await this.#waited(writer);
    assert.equal(await writer.exec(`sha256sum </${layered}/data`), sum);
    await this.#work.remove(paths.pods, layered);
    await this.#set.attached(0);
    return said;
  }

  async end(): Promise<string> {
    await this.#work.remove(paths.statefulSets, this.#set.name);
    await this.#work.gone(paths.pods);
    await this.#set.attached(0);
    await this.#work.remove(paths.claims, ...kinds.map((kind) => this.#set.claim(kind)), layered);
    await this.#work.gone(paths.volumes);
    return await assertNothingLeft(this.#cluster, this.#bench.signal);
  }

  get #node(): MachineNode {
    return this.#cluster.node(this.#name);
  }

  async #onNode(script: string): Promise<string> {
    return (await this.#node.guest.sh(script)).trim();
  }

  async #onRouter(kind: typeof kinds[number]): Promise<string> {
    return await fileOnRouter(this.#cluster, await this.#work.bound(this.#set.claim(kind)));
  }

  /** The digest of the raw block volume's known data as the router has it. */
  async #rawOnRouter(): Promise<string> {
    const file = await this.#onRouter("raw");
    return await digestOf(this.#cluster.router, file, rawOffsetMebibytes, dataMebibytes);
  }

  /** Digests of the known data as a pod reads it from an ext4, an xfs and a raw block volume. */
  async #sumsIn(name: string, [ext4, xfs, raw]: readonly string[]): Promise<readonly string[]> {
    const part = `bs=1M skip=${rawOffsetMebibytes} count=${dataMebibytes} iflag=direct`;
    const text = await this.#work.exec(
      name,
      `{ sha256sum <${ext4}; sha256sum <${xfs}; dd if=${raw} ${part} 2>/dev/null | sha256sum; } | cut -d' ' -f1`,
    );
    return text.split("\n");
  }

  /** Asserts that the pod has found what one before it had written by then, and the known data, and that it writes on. */
  async #hasAll(before: readonly Progress[]): Promise<readonly Progress[]> {
    const after = await this.#writer.progress();
    for (const [index, { volume, writes }] of before.entries()) {
      const { found } = after[index]!;
      assert(found >= writes, `${volume}: after ${writes} writes ${found} were found`);
    }
    assert.deepEqual(await this.#sumsIn(this.#set.pod, dataPaths), this.#sums);
    return after;
  }

  /** Asserts that the pod writes on. @param awaySeconds how long something was away that must not be in a write's way */
  async #writesOn(awaySeconds = Infinity): Promise<string> {
    const progress = await this.#writer.progress();
    assert(slowestMs(progress) < awaySeconds * 500, progressText(progress));
    return progressText(progress);
  }

  async #container(): Promise<{ containerId: string | undefined; isReady: boolean }> {
    const { status } = await this.#cluster.api.get<Pod>(`${paths.pods}/${this.#set.pod}`);
    const [container] = status.containerStatuses ?? [];
    return { containerId: container?.containerID, isReady: container?.ready === true };
  }

  /** Ends when the router is back. */
  async #reboot(bootIdentity: "kept" | "new"): Promise<void> {
    const body = JSON.stringify({ downMs: downSeconds * 1000, bootIdentity });
    await this.#cluster.router.control("/reboot", { method: "POST", body });
    await pause(downSeconds * 1000);
  }

  /** Asserts that a pod writes on after a reboot in which its writes have waited. */
  async #waited(writer: WritingPod): Promise<string> {
    const progress = await writer.progress();
    assert(slowestMs(progress) > downSeconds * 500, `no write waited: ${progressText(progress)}`);
    return `it was away for ${downSeconds} s; ${progressText(progress)}`;
  }
}

/** A command that writes known data to a file or device. */
function noise(path: string, offsetMebibytes = 0): string {
  const where = `bs=1M seek=${offsetMebibytes} count=${dataMebibytes}`;
  return `dd if=/dev/urandom of=${path} ${where} conv=notrunc,fsync`;
}
