import assert from "node:assert/strict";
import { join } from "node:path";
import { releaseCommand } from "../../../src/cli/release.ts";
import { hostOutput } from "../../../tools/host_command.ts";
import type { KubeObject } from "../kit/api.ts";
import { allShown, exportsOf, shownOn } from "../kit/attachments.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { type Attachment, claimOf, paths, podOf, type Volume, type VolumeMode } from "../kit/objects.ts";
import { routerUser } from "../kit/router.ts";
import { secondsSince, until } from "../kit/waiting.ts";
import { uses, Workload } from "../kit/workload.ts";
import { appendingTo, writingTo } from "../kit/writers.ts";
import { driverName } from "../kit/driver.ts";

/** The legacy Go driver's volumes, from its last hour to their release. */
export const suite: Suite = {
  what: "volumes that the legacy driver made and attached are taken over under their writers, and given back",
  limitMinutes: 10,
  run: async (bench) => {
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet" },
      controllerLater: true,
    });
    const migration = new Migration(bench, cluster);
    await bench.story([
      ["a new node works with what the legacy controller publishes", () => migration.begin()],
      ["the new controller takes every volume over, and no writer feels it", () => migration.migrate()],
      ["attached anew a volume has an epoch, and its pod finds what it wrote", () => migration.attachAnew()],
      ["what was never detached is given back under its writer", () => migration.release()],
      ["taken over again, everything can be deleted, and leaves nothing", async () => {
        await migration.end();
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

/** A disk of the router as its control port shows it. */
type Disk = Readonly<Record<string, unknown>> & { readonly slot: string; readonly comment?: string };

class Migration {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;
  readonly #earlier: LegacyDriver;
  /** By their claims: a raw block volume and a file system that pods write to, and a raw block volume that nobody has. */
  readonly #volumes = new Map<string, LegacyVolume>();

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
    this.#earlier = new LegacyDriver(cluster, bench.signal);
  }

  async begin(): Promise<string> {
    for (const [claim, mode] of [["raw", "Block"], ["files", "Filesystem"], ["idle", "Block"]] as const) {
      this.#volumes.set(claim, await this.#earlier.create(claim, mode));
      await this.#work.bound(claim);
    }
    await this.#startPod("raw");
    await this.#startPod("files");
    for (const claim of ["raw", "files"]) await this.#earlier.attach(this.#volume(claim));
    for (const claim of ["raw", "files"]) await this.#work.running(claim);
    await this.#progress();
    const [loops, mounts] = await this.#onNode();
    return `${mounts!.length} mounts, ${loops!.length} loop devices; they write`;
  }

  async migrate(): Promise<string> {
    const [disks, exports, onNode] = [
      await this.#disks(),
      await exportsOf(this.#cluster),
      await this.#onNode(),
    ];
    const before = await this.#progress();
    await this.#cluster.router.control("/log", { method: "DELETE" });
    const started = performance.now();
    await this.#cluster.startController(this.#bench.signal);
    await until(
      "all records",
      async () => (await this.#disks()).every(({ comment = "" }) => comment !== ""),
      {
        limitSeconds: 60,
        signal: this.#bench.signal,
      },
    );
    const seconds = secondsSince(started);
    assert.equal(await allShown(this.#cluster, this.#bench.signal), 2);
    for (const claim of ["raw", "files"]) assert.equal(shownOn(await this.#object(claim)).node, "n1");
    assert.deepEqual((await this.#disks()).map(withoutComment), disks.map(withoutComment));
    assert.deepEqual(await exportsOf(this.#cluster), exports);
    assert.deepEqual(await this.#onNode(), onNode);
    await this.#assertSamePods(before);
    const changes = await this.#changes();
    assert(changes.every((command) => / comment=/.test(command)), changes.join("\n"));
    return `after ${seconds} s: ${changes.length} commands that set a comment`;
  }

  async attachAnew(): Promise<string> {
    const { id, nqn } = this.#volume("raw");
    const written = (await this.#progress())["raw"]!;
    await this.#work.remove(paths.pods, "raw");
    await this.#work.gone(paths.attachments, (one) => isOf(one as Attachment, id));
    assert.equal(
      (await exportsOf(this.#cluster)).includes(nqn),
      false,
      "it is exported although nobody has it",
    );
    await this.#startPod("raw");
    await this.#work.running("raw");
    const context = (await this.#contexts())[id];
    assert.match(context?.["nqn"] ?? "", new RegExp(`^${nqn}:[0-9]+-[0-9a-f]{8}$`));
    // A node of the legacy driver looks for this name, and finds nothing.
    const exports = await exportsOf(this.#cluster);
    assert.deepEqual([exports.includes(nqn), exports.includes(context?.["nqn"] ?? "")], [false, true]);
    const found = Number(await this.#work.exec("raw", "cat /tmp/found"));
    assert(found >= written, `it had written ${written} times and found ${found}`);
    return `${context?.["nqn"]}; ${found} writes were there`;
  }

  /** As a person does it who goes back. */
  async release(): Promise<string> {
    const before = await this.#progress();
    const onNode = await this.#onNode();
    assert.deepEqual(await this.#cluster.controller.stop(), []);
    for (const claim of ["files", "idle"]) {
      const { id, nqn } = this.#volume(claim);
      const { code, out } = await this.#giveBack(id);
      assert.equal(code, 0, out);
      assert.match(out, new RegExp(`${id} is given back; it is exported under ${nqn}`));
    }
    await assert.rejects(
      this.#giveBack(this.#volume("raw").id),
      /does not know: node=n1; unpublish it first/,
    );
    const disks = await this.#disks();
    for (const claim of ["files", "idle"]) {
      const { id, nqn } = this.#volume(claim);
      const disk = disks.find(({ slot }) => slot === id);
      assert.equal(disk?.comment ?? "", "");
      assert.equal((await exportsOf(this.#cluster)).includes(nqn), true, `${nqn} is not exported`);
    }
    assert.deepEqual(await this.#onNode(), onNode);
    await this.#assertSamePods(before);
    return "a volume in use and one that nobody had; one with an epoch was refused";
  }

  async end(): Promise<void> {
    await this.#cluster.controller.start(this.#bench.signal);
    await this.#work.remove(paths.pods, "raw", "files");
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.claims, "raw", "files", "idle");
    await this.#work.gone(paths.volumes);
  }

  /** `rds-csi release`, for this cluster by its uid. */
  async #giveBack(id: string): Promise<{ readonly code: number; readonly out: string }> {
    const { metadata } = await this.#cluster.api.get<KubeObject>("/api/v1/namespaces/kube-system");
    const out: string[] = [];
    const code = await releaseCommand([
      id,
      ...["--rds-address", "127.0.0.1", "--rds-port", `${this.#cluster.router.sshPort}`],
      ...["--rds-user", routerUser, "--rds-password-file", join(this.#bench.folder, "password")],
      ...["--rds-insecure-skip-verify", "--unexport-grace", "0s", "--cluster-id", metadata.uid ?? ""],
    ], {
      out: (line) => out.push(line),
      err: (line) => out.push(line),
      env: () => undefined,
      signal: this.#bench.signal,
    });
    return { code, out: out.join("\n") };
  }

  #volume(claim: string): LegacyVolume {
    const volume = this.#volumes.get(claim);
    if (volume === undefined) throw new Error(`there is no volume of ${claim}`);
    return volume;
  }

  /** A pod of the claim's name that writes to it. */
  async #startPod(claim: string): Promise<void> {
    const { mode } = this.#volume(claim);
    const script = mode === "Block" ? writingTo(claim) : appendingTo(claim);
    await this.#work.create(paths.pods, podOf(claim, script, uses(mode, claim)));
  }

  #object(claim: string): Promise<Volume> {
    return this.#cluster.api.get<Volume>(`${paths.volumes}/${this.#volume(claim).id}`);
  }

  /** The disks of volumes. */
  async #disks(): Promise<readonly Disk[]> {
    const { disks } = await this.#cluster.router.control<{ disks: readonly Disk[] }>("/state");
    return disks.filter(({ slot }) => slot.startsWith("pvc-"));
  }

  /** Loop devices and mounts of volumes at the node, as the kernel lists them. */
  async #onNode(): Promise<readonly string[][]> {
    const { folder } = this.#cluster.node("n1").kubelet.location;
    const mounts = (await Deno.readTextFile("/proc/self/mountinfo")).split("\n")
      .filter((line) => line.includes(`${folder}/`) && line.includes("kubernetes.io/csi"));
    const loops = await hostOutput("losetup", ["--list", "--noheadings", "--raw", "--output=NAME,BACK-FILE"]);
    return [loops.split("\n").filter((line) => line.includes("pvc-")), mounts].map((lines) =>
      lines.toSorted()
    );
  }

  /** How often each pod has written; each has done so once more before this ends. */
  async #progress(): Promise<Readonly<Record<string, number>>> {
    const read = async (pod: string) =>
      Number(await this.#work.exec(pod, "cat /tmp/count 2>/dev/null || echo 0"));
    const counts: Record<string, number> = {};
    for (const pod of ["raw", "files"]) {
      const before = await read(pod);
      await until(`${pod} to write`, async () => (counts[pod] = await read(pod)) > before, {
        limitSeconds: 30,
        signal: this.#bench.signal,
      });
    }
    return counts;
  }

  async #assertSamePods(before: Readonly<Record<string, number>>): Promise<void> {
    const now = await this.#progress();
    for (const [pod, count] of Object.entries(before)) {
      assert(now[pod]! > count, `${pod} has written ${now[pod]} times, and ${count} times before`);
      assert.equal(await this.#work.restarts(pod), 0, `${pod} was started again`);
    }
  }

  /** By volume, what nodes were told of the attached ones. */
  async #contexts(): Promise<Readonly<Record<string, Readonly<Record<string, string>>>>> {
    const attachments = await this.#work.attachments();
    return Object.fromEntries(attachments.map(({ spec, status }) => [
      spec.source.persistentVolumeName ?? "",
      status?.attachmentMetadata ?? {},
    ]));
  }

  /** The commands that change a disk, of those that the router was given since the log was cleared: name plates are folders. */
  async #changes(): Promise<string[]> {
    const log = await this.#cluster.router.control<readonly { readonly command: string }[]>("/log");
    return log.map(({ command }) => command).filter((command) =>
      /\/[a-z/-]+[ /](set|add|remove|unset)\b/.test(command) && !command.includes("/names-of-")
    );
  }
}

function withoutComment({ comment: _comment, ...rest }: Disk): object {
  return rest;
}

function isOf({ spec }: Attachment, volume: string): boolean {
  return spec.source.persistentVolumeName === volume;
}

const folder = "/storage-pool/metal-csi";
const nqnPrefix = "nqn.2000-02.com.mikrotik";
const port = 4420;

/** A volume as the legacy Go driver for the same routers makes it: one claim's, exported all the time. */
interface LegacyVolume {
  /** Of the volume, of its disk, and of its PersistentVolume. */
  readonly id: string;
  readonly claim: string;
  readonly mode: VolumeMode;
  /** Under which it is exported, whoever has it. */
  readonly nqn: string;
}

/**
 * The legacy Go driver, which is replaced: what it has left on the router and in the API, and what its controller and its
 * attacher did when they were still there. Its nodes have been exchanged already, as the guide says.
 */
class LegacyDriver {
  readonly #cluster: Cluster;
  readonly #signal: AbortSignal;

  constructor(cluster: Cluster, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#signal = signal;
  }

  /** Makes a claim's volume of 1 GiB, with an ext4 in it if it is to be one. */
  async create(claim: string, mode: VolumeMode): Promise<LegacyVolume> {
    const id = `pvc-${crypto.randomUUID()}`;
    const volume = { id, claim, mode, nqn: `${nqnPrefix}:${id}` };
    await this.#makeDisk(volume);
    const { api } = this.#cluster;
    await api.create(paths.volumes, persistentVolumeOf(volume));
    const options = { mode, mebibytes: 1024, storageClass: "rds-ext4", volumeName: id };
    await api.create(paths.claims, claimOf(claim, options));
    return volume;
  }

  /** Attaches it where Kubernetes wants it: a node is told the address, the export's name and the file system. */
  async attach({ id, nqn, mode }: LegacyVolume): Promise<void> {
    const { api } = this.#cluster;
    const wanted = await until(`Kubernetes to want ${id} at a node`, async () => {
      const all = await api.list<Attachment>(paths.attachments);
      return all.find(({ spec }) => spec.source.persistentVolumeName === id);
    }, { limitSeconds: 60, signal: this.#signal });
    const path = `${paths.attachments}/${wanted.metadata.name}`;
    await api.patch(path, {
      metadata: {
        finalizers: [attacherFinalizer],
        annotations: { "csi.alpha.kubernetes.io/node-id": wanted.spec.nodeName },
      },
    });
    const attachmentMetadata = {
      nvme_address: "127.0.0.1",
      nvme_port: `${port}`,
      nvme_nqn: nqn,
      fs_type: mode === "Filesystem" ? "ext4" : "",
    };
    await api.patch(`${path}/status`, { status: { attached: true, attachmentMetadata } });
  }

  async #makeDisk({ id, mode, nqn }: LegacyVolume): Promise<void> {
    const { router } = this.#cluster;
    const disk = {
      slot: id,
      "file-path": `${folder}/${id}.img`,
      "file-size": 2 ** 30,
      "nvme-tcp-export": true,
      "nvme-tcp-server-port": port,
      "nvme-tcp-server-nqn": nqn,
    };
    await router.control("/disks", { method: "POST", body: JSON.stringify(disk) });
    if (mode === "Filesystem") {
      await hostOutput("mkfs.ext4", ["-q", "-F", join(router.backing, "exports", nqn)]);
    }
  }
}

/** By which the attacher keeps an object until its volume is detached. */
const attacherFinalizer = `external-attacher/${driverName.replaceAll(".", "-")}`;

function persistentVolumeOf({ id, claim, mode, nqn }: LegacyVolume): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name: id,
      annotations: { "pv.kubernetes.io/provisioned-by": driverName },
      finalizers: [attacherFinalizer],
    },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "rds-ext4",
      volumeMode: mode,
      claimRef: { namespace: "default", name: claim },
      csi: {
        driver: driverName,
        volumeHandle: id,
        ...(mode === "Filesystem" ? { fsType: "ext4" } : {}),
        // As it writes them where its StorageClass says nothing.
        volumeAttributes: {
          rdsAddress: "127.0.0.1",
          nvmeAddress: "127.0.0.1",
          nvmePort: `${port}`,
          nqn,
          volumePath: `${folder}/${id}.img`,
          ctrlLossTmo: "-1",
          reconnectDelay: "5",
          keepAliveTmo: "0",
          migrationTimeoutSeconds: "300",
          "storage.kubernetes.io/csiProvisionerIdentity": `1700000000000-1-${driverName}`,
        },
      },
    },
  };
}
