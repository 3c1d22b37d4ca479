import assert from "node:assert/strict";
import { join } from "node:path";
import { auditCommand } from "../../../src/cli/audit/audit.ts";
import type { CommandIo } from "../../../src/cli/io.ts";
import { withdrawCommand } from "../../../src/cli/withdraw.ts";
import { type CsiClients, dial } from "../../../src/csi/server/client.ts";
import { loadCsi } from "../../../src/csi/server/proto.ts";
import { systemClock } from "../../../src/host/clock.ts";
import { parseObjects } from "../../deploy/objects.ts";
import { blocksOf, readPage } from "../../docs/pages.ts";
import { fakeCommandIo } from "../../fakes/command_io.ts";
import { FakeKubeApi } from "../../fakes/kube_api.ts";
import { hostOutput, isFile } from "../../../tools/host_command.ts";
import { createRequest, publishRequest } from "../../support/controller_calls.ts";
import { binary, type Part, startPart } from "../../support/parts.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import { type Cluster, type Installed, renderAndApply, type Uninstalled } from "../kit/cluster.ts";
import { accountKubeconfig } from "../kit/deployment.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { driverName } from "../kit/driver.ts";
import { type Claim, claimOf, idle, paths, podOf } from "../kit/objects.ts";
import { routerPassword, routerUser } from "../kit/router.ts";
import { eventAbout } from "../kit/attachments.ts";
import { until } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";
import { PagePerson } from "./pages/person.ts";

/** A node of the lost cluster. */
const oldNode = "node-of-the-lost-cluster";

/** The namespaces of claims that are on name plates, by the names of claims and volumes. */
const plated = { photos: "default", films: "media" } as const;

/** What docs/guides/disaster.md says of a lost etcd, step by step. */
export const suite: Suite = {
  what: "a new cluster takes the place of one whose etcd was lost, and gets its volumes",
  limitMinutes: 8,
  run: async (bench) => {
    await using person = await PagePerson.make(bench, "127.0.0.1", {});
    const lost = new Lost(bench, person);
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet" },
      install: (location) => lost.makeAndInstall(location),
    });
    await bench.story([
      ["the audit of the new cluster lists the volumes, and who had them", () => lost.audit(cluster)],
      ["a volume that nobody had is there for a pod, with what was in it", () => lost.use(cluster, "idle")],
      ["claims that are on name plates come back as the page says", () => lost.rebuild(cluster)],
      ["one that a node had is refused, until somebody vouches", () => lost.refuseAndWithdraw(cluster)],
      ["deleted by this cluster they leave nothing", async () => {
        await lost.end(cluster);
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

class Lost {
  readonly #bench: Bench;
  /** By what they hold. */
  readonly #volumes = new Map<string, string>();
  readonly #person: PagePerson;
  #clusterId = "";
  #location: Uninstalled | undefined;

  constructor(bench: Bench, person: PagePerson) {
    this.#bench = bench;
    this.#person = person;
  }

  /** What the lost cluster has left on the router; and the driver in the new one, with the mark that is seen there. */
  async makeAndInstall(location: Uninstalled): Promise<Installed> {
    this.#location = location;
    await this.#person.begin(location);
    await this.#live(location);
    await this.#name(location);
    const { files } = await location.router.control<{ files: { name: string }[] }>("/state");
    const marks = new Set(files.flatMap(({ name }) => /\.([0-9a-f]{8})$/.exec(name)?.[1] ?? []));
    assert.equal(marks.size, 1);
    this.#clusterId = `hash:${[...marks][0]}`;
    return await renderAndApply(location, { clusterId: this.#clusterId });
  }

  /** The controller of the lost cluster, as long as that lived. */
  async #live(location: Uninstalled): Promise<void> {
    const part = await this.#controller(location, "--kubernetes=off", `--known-node=${oldNode}`);
    const clients = dial(loadCsi(), `unix://${join(location.folder, "lost.sock")}`, systemClock);
    try {
      await part.ready(() => serves(clients), 100, this.#bench.signal);
      for (const name of ["busy", "idle", ...Object.keys(plated)]) {
        await this.#make(clients, location, name);
        if (name === "busy") continue;
        const volumeId = this.#id(name);
        await clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId: oldNode });
      }
    } finally {
      clients.close();
      await part.kill();
    }
  }

  /** Its controller with the API server that is lost now, from which the names on the plates are. */
  async #name(location: Uninstalled): Promise<void> {
    await using api = new FakeKubeApi();
    for (const [name, namespace] of Object.entries(plated)) {
      api.put(paths.volumes, {
        metadata: { name },
        spec: {
          csi: { driver: driverName, volumeHandle: this.#id(name) },
          claimRef: { namespace, name, uid: `uid-of-${name}` },
          storageClassName: "rds-ext4",
        },
      });
    }
    const kubeconfig = join(location.folder, "lost-kubeconfig");
    await Deno.writeTextFile(kubeconfig, api.kubeconfig());
    const part = await this.#controller(location, `--kubeconfig=${kubeconfig}`);
    try {
      await part.ready(
        async () => {
          const { files } = await location.router.control<{ files: { name: string }[] }>("/state");
          const shown = files.flatMap(({ name }) => /names-of-[0-9a-f]{8}\/(.*)/.exec(name)?.[1] ?? []);
          return shown.length === Object.keys(plated).length;
        },
        100,
        this.#bench.signal,
      );
    } finally {
      await part.kill();
    }
  }

  async #controller({ folder }: Uninstalled, ...flags: readonly string[]): Promise<Part> {
    return startPart(isFile(binary) ? "binary" : "sources", "serve", join(folder, "log"), [
      ...["--mode=controller", `--endpoint=unix://${join(folder, "lost.sock")}`],
      ...["--metrics-address=127.0.0.1:0", "--cluster-id=nobody has written it down", ...flags],
      ...["--nvme-address=127.0.0.1", "--unexport-grace=0s", ...await this.#reach()],
    ]);
  }

  /** A volume with a file system in it, as a node of the lost cluster would have made it. */
  async #make({ controller }: CsiClients, { router, folder }: Uninstalled, name: string): Promise<void> {
    const { volume } = await controller.call("CreateVolume", createRequest(name));
    const id = volume!.volumeId;
    const { publishContext } = await controller.call("ControllerPublishVolume", publishRequest(id, oldNode));
    const content = join(folder, `content-${name}`);
    await Deno.mkdir(content);
    await Deno.writeTextFile(join(content, "data"), name);
    const device = join(router.backing, "exports", publishContext["nqn"]!);
    await hostOutput("mkfs.ext4", ["-q", "-F", "-d", content, device]);
    this.#volumes.set(name, id);
  }

  async audit(cluster: Cluster): Promise<string> {
    const out = await this.#run(auditCommand, await kubeconfigOf(cluster));
    for (const id of this.#volumes.values()) assert.match(out, new RegExp(`disk-without-pv +${id} `));
    // The reason is below the row.
    assert.match(
      out,
      new RegExp(`holder-without-attachment +${this.#id("busy")} .*\\n.*\\n.*node=${oldNode}`),
    );
    assert.match(out, /^ {2}name: media\/films$/m);
    return out.split("\n").at(-1) ?? "";
  }

  /** Types the blocks of the page. There is no pod here in which its command would run. */
  async rebuild(cluster: Cluster): Promise<string> {
    const blocks = blocksOf(readPage("docs/guides/disaster.md"))
      .filter(({ heading, language }) => heading === "Only the router is left" && language === "sh");
    const [print, create] = blocks;
    assert.equal(blocks.length, 2);
    const flags = [await kubeconfigOf(cluster), ...await this.#reach(), "2> lost.txt"].join(" ");
    const printing = print!.text.replace(/^kubectl .* -- \\\n */, "").replace(
      "hash:1a2b3c4d",
      this.#clusterId,
    );
    await this.#person.type({ ...print!, text: `cd ~; ${printing} ${flags}` });
    const reported = await Deno.readTextFile(join(this.#person.folder, "lost.txt"));
    for (
      const text of [
        "Printed for 2 volumes of 4;",
        "make the namespaces before you apply them: default, media.",
        `Left out: ${this.#id("idle")}, which the PersistentVolume idle-recovered names already.`,
        `Left out: ${this.#id("busy")}, which ${oldNode} has.`,
      ]
    ) assert.ok(reported.includes(text), reported);
    await this.#person.type({ ...create!, text: create!.text.replace("NAMESPACE", "media") });
    // Their owner's manifest of the claim, which names no volume, is applied later.
    const own = claimOf("photos", { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" });
    await this.#person.type({ ...create!, text: `kubectl apply -f - <<END\n${JSON.stringify(own)}\nEND` });
    const work = new Workload(cluster, this.#bench.signal);
    await cluster.api.create(paths.pods, podOf("photos", idle, { filesystems: ["photos"] }));
    await work.running("photos");
    assert.equal(await work.exec("photos", "cat /photos/data"), "photos");
    await until("the claim in another namespace to be bound", async () => {
      const { status } = await cluster.api.get<Claim>(`${claimsIn("media")}/films`);
      return status.phase === "Bound";
    }, { limitSeconds: 60, signal: this.#bench.signal });
    return reported.split("\n").find((line) => line.includes("Printed"))!.slice(0, 120);
  }

  async use(cluster: Cluster, name: string): Promise<string> {
    const work = new Workload(cluster, this.#bench.signal);
    await this.#adopt(cluster, name);
    await work.running(name);
    assert.equal(await work.exec(name, `cat /${name}/data`), name);
    await work.exec(name, `echo more >>/${name}/data; sync`);
    return `${this.#id(name)}, by the PersistentVolume of the guide`;
  }

  async refuseAndWithdraw(cluster: Cluster): Promise<string> {
    const work = new Workload(cluster, this.#bench.signal);
    await this.#adopt(cluster, "busy");
    const { message } = await eventAbout(cluster, "AttachRefused", "busy", this.#bench.signal);
    assert.match(message, new RegExp(`Node n1 was refused: .*${oldNode}`));
    const out = await this.#run(withdrawCommand, this.#id("busy"), "--vouch");
    assert.match(out, new RegExp(`it was taken from ${oldNode}`));
    await work.running("busy");
    assert.equal(await work.exec("busy", "cat /busy/data"), "busy");
    return out;
  }

  /** The objects of the claims stay with their volumes: nobody here has provisioned those. */
  async end(cluster: Cluster): Promise<void> {
    const work = new Workload(cluster, this.#bench.signal);
    await work.remove(paths.pods, "idle", "busy", "photos");
    await work.gone(paths.attachments);
    await work.remove(paths.claims, "idle", "busy");
    for (const [name, namespace] of Object.entries(plated)) await work.remove(claimsIn(namespace), name);
    const objects = [
      "idle-recovered",
      "busy-recovered",
      ...Object.keys(plated).map((name) => this.#id(name)),
    ];
    await work.remove(paths.volumes, ...objects);
    for (const volumeId of this.#volumes.values()) {
      await cluster.controller.clients.controller.call("DeleteVolume", { volumeId });
    }
  }

  /** The PersistentVolume that the guide shows, for this volume; a claim that names it, and a pod. */
  async #adopt(cluster: Cluster, name: string): Promise<void> {
    const shown = blocksOf(readPage("docs/guides/disaster.md")).find(({ text }) =>
      text.includes("kind: PersistentVolume\n")
    );
    assert(shown !== undefined);
    const yaml = shown.text.replace(/(volumeHandle: ).*/, `$1${this.#id(name)}`)
      .replace(/name: pvc-\S+-recovered/, `name: ${name}-recovered`)
      .replace("name: data", `name: ${name}`).replace("storage: 10Gi", "storage: 1Gi");
    await cluster.api.create(paths.volumes, parseObjects(yaml)[0]!);
    const claim = { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" } as const;
    await cluster.api.create(paths.claims, claimOf(name, { ...claim, volumeName: `${name}-recovered` }));
    await cluster.api.create(paths.pods, podOf(name, "sleep 1000000 & wait", { filesystems: [name] }));
  }

  /** Flags by which a controller, or a command, reaches the router. */
  async #reach(): Promise<readonly string[]> {
    const { folder, router } = this.#location!;
    const password = join(folder, "lost-password");
    await Deno.writeTextFile(password, routerPassword, { mode: 0o600 });
    return [
      ...["--rds-address=127.0.0.1", `--rds-port=${router.sshPort}`, `--rds-user=${routerUser}`],
      ...[`--rds-password-file=${password}`, "--rds-insecure-skip-verify"],
    ];
  }

  async #run(
    command: (args: string[], io: CommandIo) => Promise<number>,
    ...args: string[]
  ): Promise<string> {
    const { io, out, err } = fakeCommandIo();
    const mark = `--cluster-id=${this.#clusterId}`;
    const code = await command([...args, ...await this.#reach(), mark, "--unexport-grace=0s"], io);
    assert.notEqual(code, 2, err.join("\n"));
    return out.join("\n");
  }

  #id(name: string): string {
    const id = this.#volumes.get(name);
    assert(id !== undefined, name);
    return id;
  }
}

function claimsIn(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
}

async function kubeconfigOf({ plane, chart }: Cluster): Promise<string> {
  return `--kubeconfig=${await accountKubeconfig(plane, chart.namespace, chart.controllerAccount)}`;
}

async function serves({ identity }: CsiClients): Promise<boolean> {
  try {
    return (await identity.call("Probe", {}, 1_000)).ready?.value === true;
  } catch {
    // Nobody listens yet.
    return false;
  }
}
