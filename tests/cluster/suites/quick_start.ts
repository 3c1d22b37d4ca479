import assert from "node:assert/strict";
import { join } from "node:path";
import { hostOutput } from "../../guest/kit/host_command.ts";
import { parseObjects } from "../../deploy/objects.ts";
import { type Block, blocksOf, readPage } from "../../docs/pages.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import { Chart } from "../kit/chart.ts";
import type { Cluster, Installed, Uninstalled } from "../kit/cluster.ts";
import { untilGranted } from "../kit/deployment.ts";
import { packImage, peoplesImage } from "../kit/image.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { PagePerson } from "../kit/page_person.ts";
import { paths } from "../kit/objects.ts";
import type { Router, RouterDoor } from "../kit/router.ts";
import { Workload } from "../kit/workload.ts";

/** The router's address here: with the ports that a router has. */
const address = "127.22.0.1";

/** What the rig gives by values, as to every suite: nothing looks for the images, and nobody waits for loop devices. */
const rigValues = {
  controller: {
    extraArgs: ["--unexport-grace=0s"],
    nodeSelector: { "rds-csi.test/runs-pods-of-the-chart": "true" },
  },
  node: { nodeSelector: { "rds-csi.test/runs-pods-of-the-chart": "true" } },
  sidecars: { logLevel: 3 },
};

/** Every block of docs/quick-start.md, in order: nothing of it is left out. */
export const suite: Suite = {
  what: "every command of docs/quick-start.md, typed as it stands there",
  limitMinutes: 8,
  run: async (bench) => {
    const blocks = blocksOf(readPage("docs/quick-start.md"));
    const [installing, removing] = ["helm install", "helm uninstall"].map((words) =>
      blocks.findIndex(({ text }) => text.includes(words))
    ) as [number, number];
    assert(0 < installing && installing < removing, "the page installs, and takes away again");
    const person = await PagePerson.make(bench, address, rigValues);
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet" },
      router: await adminsDoor(person),
      install: async (place) => {
        await freeDrives(place.router);
        await person.begin(place);
        await type(bench, person, blocks.slice(0, installing + 1));
        return await installed(place);
      },
    });
    await importImage(cluster, bench);
    await type(bench, person, blocks.slice(installing + 1, removing));
    const isLeft = await bench.test("nothing of the first volume is left", () => {
      return assertNothingLeft(cluster, bench.signal);
    });
    if (!isLeft) return;
    // The kubelets would end the pods when their objects go.
    assert.deepEqual(await cluster.stopController(), []);
    await type(bench, person, blocks.slice(removing));
    await bench.test("the driver, its user and its folder are gone", () => assertGone(cluster));
  },
};

/** A test for each block; the first that fails ends the suite. */
async function type(bench: Bench, person: PagePerson, blocks: readonly Block[]): Promise<void> {
  for (const block of blocks) {
    const [first = ""] = block.text.split("\n");
    const name = `${block.heading}, line ${block.line}: ${first.slice(0, 60)}`;
    const ok = await bench.test(name, () => person.type(block));
    if (!ok) throw new Error(`The quick start ends at line ${block.line}`);
  }
}

/** The router's administrator logs in with a key of their own, as nobody can type a password here. */
async function adminsDoor(person: PagePerson): Promise<RouterDoor> {
  const key = join(person.folder, "admin-key");
  await hostOutput("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
  // With a pool of its own beside the drives that the page makes one of.
  return {
    address,
    sshPort: 22,
    pool: "system:1G:btrfs",
    user: ["--user", "admin", "--authorized-key", `${key}.pub`],
  };
}

/** The router comes with drives in its own pool; those of the page are to be empty. */
async function freeDrives(router: Router): Promise<void> {
  for (const drive of ["nvme1", "nvme2"]) {
    await router.control(`/disks/${drive}`, {
      method: "PATCH",
      body: JSON.stringify({ "raid-master": "none" }),
    });
  }
}

/** The release as Helm knows it, with its namespace and its Secret, which the page has made itself. */
async function installed({ folder, plane, tools }: Uninstalled): Promise<Installed> {
  const admin = ["--kubeconfig", await plane.kubeconfig("admin")];
  const manifest = await hostOutput(tools.helm, ["get", "manifest", "rds-csi", "-n", "rds-csi", ...admin]);
  const namespace = await plane.api.get<object>("/api/v1/namespaces/rds-csi");
  const objects = parseObjects(`${JSON.stringify({ kind: "Namespace", ...namespace })}\n---\n${manifest}`);
  const chart = Chart.of(objects, { controllerArgs: rigValues.controller.extraArgs });
  await untilGranted(plane, chart);
  const credentials = join(folder, "credentials");
  await Deno.mkdir(credentials, { mode: 0o700 });
  const secret = await plane.api.get<{ data: Record<string, string> }>(
    "/api/v1/namespaces/rds-csi/secrets/rds-csi-secret",
  );
  for (const [name, value] of Object.entries(secret.data)) {
    await Deno.writeTextFile(join(credentials, name), atob(value), { mode: 0o400 });
  }
  return { chart, credentials };
}

/** The pod of the page has an image that nobody can download here. */
async function importImage(cluster: Cluster, bench: Bench): Promise<void> {
  const archive = join(bench.folder, "busybox.tar");
  await packImage(archive, peoplesImage);
  await cluster.node("n1").runtime.importImage(archive);
}

async function assertGone(cluster: Cluster): Promise<string> {
  const work = new Workload(cluster, AbortSignal.timeout(60_000));
  await work.gone("/api/v1/namespaces", ({ metadata }) => metadata.name === "rds-csi");
  assert.deepEqual(await cluster.api.list(paths.classes), []);
  const { files } = await cluster.router.control<{ files: { name: string }[] }>("/state");
  assert.deepEqual(files.map(({ name }) => name).filter((name) => /csi/.test(name)), []);
  const users = await cluster.router.control<{ output: string }>("/console", {
    method: "POST",
    body: JSON.stringify({ command: ":put [/user/print as-value]" }),
  });
  assert.doesNotMatch(users.output, /rds-csi/);
  return "no namespace, class, file or user";
}
