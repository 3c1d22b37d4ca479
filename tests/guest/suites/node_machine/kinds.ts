import assert from "node:assert/strict";
import { join } from "node:path";
import { paths, podOf, statefulSetOf, type Wish } from "../../../cluster/kit/objects.ts";
import { secondsSince, until } from "../../../cluster/kit/waiting.ts";
import { Workload } from "../../../cluster/kit/workload.ts";
import type { Bench } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { driverOf, namespace } from "../../machine/release.ts";
import { sharedPool } from "../../machine/router.ts";
import { assertNoDirectoryLeft, assertNothingLeft } from "./nothing_left.ts";
import { OnePodSet, startSeconds } from "./one_pod_set.ts";
import type { Steps } from "./on_machines.ts";
import { fileOnRouter } from "./router_files.ts";
import { directoryValues, makeSharedFolder } from "./shared_folder.ts";
import { type Progress, progressText, WritingPod, writingTo } from "./writing.ts";

/** The pod that has the directory too. */
const otherPod = "other";
/** Longest until a node has closed what no pod has any more, in seconds. */
const closedSeconds = 180;
const passphraseName = "volume-passphrase";
const encryptedClass = "rds-encrypted";
const claims: Readonly<Record<"ext4" | "raw" | "shared", Wish>> = {
  ext4: { mode: "Filesystem", mebibytes: 1024, storageClass: encryptedClass },
  raw: { mode: "Block", mebibytes: 64, storageClass: encryptedClass },
  shared: { mode: "Filesystem", mebibytes: 64, storageClass: "rds-directory", shared: true },
};
const targets = { ext4: "/ext4/counter", raw: "/dev/raw", shared: "/shared/counter" };
const sharedClaim = "shared-app-0";
const otherTargets = { [sharedClaim]: `/${sharedClaim}/other-counter` };
/** What a pod writes, and what nobody may find on the router. */
const marker = "the-plain-text-of-a-pod";
const lines = 32_768;

/** What the chart gets for these kinds. */
export const kindsValues = {
  ...directoryValues,
  storageClasses: [{
    name: encryptedClass,
    allowVolumeExpansion: true,
    encryptionSecret: { name: passphraseName, namespace },
    // A guess of the passphrase costs little, because emulation makes it slow.
    parameters: { pbkdfMemory: "32", pbkdfTime: "100" },
  }],
};

/** A life of encrypted volumes and of a shared directory on one node. */
export class MachineKinds {
  readonly #bench: Bench;
  readonly #cluster: MachineCluster;
  readonly #name: string;
  readonly #work: Workload;
  readonly #set: OnePodSet;
  readonly #writer: WritingPod;
  readonly #other: WritingPod;

  constructor(bench: Bench, cluster: MachineCluster, node: string) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#name = node;
    this.#work = new Workload(cluster, bench.signal);
    this.#set = new OnePodSet("app", cluster, this.#work, bench.signal);
    this.#writer = new WritingPod(this.#set.pod, targets, this.#work, bench.signal);
    this.#other = new WritingPod(otherPod, otherTargets, this.#work, bench.signal);
  }

  /** The steps, in their order. */
  steps(): Steps {
    return [
      ["a pod writes to encrypted volumes, of which the router has cipher text", () => this.encrypt()],
      ["two pods write in one directory, and each sees what the other writes", () => this.share()],
      ["the drivers' containers are killed, and both pods write on", () => this.kill()],
      ["without its pods nothing is open on the node, and the next pod has the data", () => {
        return this.leaveAndReturn();
      }],
      ["with their claims all volumes go, and leave nothing", () => this.end()],
    ];
  }

  async encrypt(): Promise<string> {
    const secret = { encryptionPassphrase: "correct horse battery staple" };
    await this.#work.create(`/api/v1/namespaces/${namespace}/secrets`, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: passphraseName },
      stringData: secret,
    });
    await makeSharedFolder(this.#cluster.router);
    const started = performance.now();
    await this.#work.create(paths.statefulSets, statefulSetOf(this.#set.name, 1, writingTo(targets), claims));
    await this.#set.runs();
    const seconds = secondsSince(started);
    const text = `yes ${marker} | head -n ${lines}`;
    await this.#writer.exec(`
      ${text} >/ext4/text
      ${text} | dd of=/dev/raw bs=1M seek=16 conv=notrunc,fsync
      ${text} >/shared/text
      sync`);
    const mounts = await this.#writer.exec("grep -E ' /(ext4|shared) ' /proc/mounts | cut -d' ' -f2,3");
    assert.equal(mounts, "/ext4 ext4\n/shared nfs4");
    for (const kind of ["ext4", "raw"] as const) {
      const file = await fileOnRouter(this.#cluster, await this.#work.bound(this.#set.claim(kind)));
      assert.equal(await this.#cluster.router.sh('head -c 4 "$1"', file), "LUKS", kind);
      assert.equal(await this.#inPlainText(file), 0, kind);
    }
    const path = await this.#cluster.router.sh('ls "$1"/k8s/*/text', this.#share);
    assert.equal(await this.#inPlainText(path.trim()), lines, "where it is, it is found");
    assert.equal((await this.#onNode("dmsetup ls --target crypt")).split("\n").length, 2);
    return `it runs after ${seconds} s; ${progressText(await this.#writer.progress())}`;
  }

  async share(): Promise<string> {
    const started = performance.now();
    await this.#work.create(
      paths.pods,
      podOf(otherPod, writingTo(otherTargets), { filesystems: [sharedClaim] }),
    );
    await this.#work.running(otherPod, startSeconds);
    const seconds = secondsSince(started);
    const other = await this.#other.progress();
    const seen = [
      this.#writer.exec("cat /shared/text | sha256sum"),
      this.#other.exec(`cat /${sharedClaim}/text | sha256sum`),
      this.#writer.exec("head -n 1 /shared/other-counter | tr -d '\\000'"),
    ];
    const [mine, others, count] = await Promise.all(seen);
    assert.equal(others, mine);
    assert(Number(count) >= other[0]!.writes, `the other has written ${other[0]!.writes}, ${count} is seen`);
    return `the other pod runs after ${seconds} s; ${progressText(other)}`;
  }

  async kill(): Promise<string> {
    const { runtime } = this.#cluster.node(this.#name);
    const started = performance.now();
    for (const daemonSet of ["rds-csi-node", "rds-csi-directory-node"]) {
      const { id, restarts } = await driverOf(this.#cluster, this.#name, daemonSet);
      await runtime.kill(id);
      await this.#writeOn();
      await until(`the container of ${daemonSet} to be back`, async () => {
        const driver = await driverOf(this.#cluster, this.#name, daemonSet);
        return driver.ready && driver.restarts === restarts + 1;
      }, { limitSeconds: startSeconds, everyMs: 500, signal: this.#bench.signal });
    }
    return `both are back after ${secondsSince(started)} s; ${await this.#writeOn()}`;
  }

  async leaveAndReturn(): Promise<string> {
    const before = await this.#writer.progress();
    const digests = "cat /ext4/text /shared/text | sha256sum";
    const sum = await this.#writer.exec(digests);
    await this.#work.remove(paths.pods, otherPod);
    await this.#set.scale(0);
    await this.#closed();
    const started = performance.now();
    await this.#set.scale(1);
    const seconds = secondsSince(started);
    const after = await this.#writer.progress();
    for (const [index, { volume, writes }] of before.entries()) {
      assert(
        after[index]!.found >= writes,
        `${volume}: after ${writes} writes ${after[index]!.found} were found`,
      );
    }
    assert.equal(await this.#writer.exec(digests), sum);
    return `a next pod after ${seconds} s; ${progressText(after)}`;
  }

  async end(): Promise<string> {
    await this.#work.remove(paths.statefulSets, this.#set.name);
    await this.#work.gone(paths.pods);
    await this.#closed();
    await this.#work.remove(paths.claims, ...Object.keys(claims).map((kind) => this.#set.claim(kind)));
    await this.#work.gone(paths.volumes);
    const left = [assertNoDirectoryLeft, assertNothingLeft].map((one) =>
      one(this.#cluster, this.#bench.signal)
    );
    return (await Promise.all(left)).join("; ");
  }

  /** The router's folder that is shared. */
  get #share(): string {
    return join(this.#cluster.router.backing, "files", sharedPool);
  }

  /** How many lines of the pod a file of the router has. A hole would be one long line, for which grep has no memory. */
  async #inPlainText(file: string): Promise<number> {
    const script = `tr -d '\\000' <"$1" | LC_ALL=C grep -F -a -c ${marker} || :`;
    return Number(await this.#cluster.router.sh(script, file));
  }

  async #onNode(script: string): Promise<string> {
    return (await this.#cluster.node(this.#name).guest.sh(script)).trim();
  }

  async #writeOn(): Promise<string> {
    const all: readonly Progress[] = [...await this.#writer.progress(), ...await this.#other.progress()];
    return progressText(all);
  }

  /** Waits until nothing of the volumes is open on the node. */
  async #closed(): Promise<void> {
    await this.#set.attached(0);
    const open =
      "ls /sys/class/nvme; dmsetup ls --target crypt | grep -v '^No devices'; grep ' nfs4 ' /proc/mounts; :";
    await until("the node to have closed everything", async () => await this.#onNode(open) === "", {
      limitSeconds: closedSeconds,
      everyMs: 1000,
      signal: this.#bench.signal,
      state: () => this.#onNode(`${open}\ngrep UnmountDevice /var/log/kubelet.log | tail -n 2`),
    });
  }
}
