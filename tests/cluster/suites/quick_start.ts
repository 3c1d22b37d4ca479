import assert from "node:assert/strict";
import { join } from "node:path";
import { blocksOf, readPage } from "../../docs/pages.ts";
import { hostOutput } from "../../guest/kit/host_command.ts";
import type { Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { paths } from "../kit/objects.ts";
import type { Router, RouterDoor } from "../kit/router.ts";
import { Workload } from "../kit/workload.ts";
import { importImage, installed, PagePerson, rigValues, type } from "./pages/person.ts";

/** The router's address here: with the ports that a router has. */
const address = "127.22.0.1";

/** Every block of docs/quick-start.md, in order: nothing of it is left out. */
export const suite: Suite = {
  what: "every command of docs/quick-start.md, typed as it stands there",
  limitMinutes: 11,
  run: async (bench) => {
    const blocks = blocksOf(readPage("docs/quick-start.md"));
    const [installing, removing] = ["helm install", "helm uninstall"].map((wording) =>
      blocks.findIndex(({ text }) => text.includes(wording))
    ) as [number, number];
    assert(0 < installing && installing < removing, "the page installs, and takes away again");
    const person = await PagePerson.make(bench, address, rigValues);
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet" },
      router: await adminsDoor(person),
      install: async (location) => {
        await freeDrives(location.router);
        await person.begin(location);
        await type(bench, person, blocks.slice(0, installing + 1));
        return await installed(location);
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
