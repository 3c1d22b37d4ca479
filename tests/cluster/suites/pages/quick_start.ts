import assert from "node:assert/strict";
import { join } from "node:path";
import { type Block, blocksOf, readPage } from "../../../docs/pages.ts";
import { hostOutput } from "../../../../tools/host_command.ts";
import { paths } from "../../kit/objects.ts";
import type { Router, RouterDoor } from "../../kit/router.ts";
import { Workload, type WorkloadCluster } from "../../kit/workload.ts";
import type { PagePerson } from "./person.ts";

/** Every block of docs/quick-start.md, in order: those that install, those that use, those that take away again. */
export interface QuickStart {
  readonly installing: readonly Block[];
  readonly using: readonly Block[];
  readonly removing: readonly Block[];
}

/** Reads the page: nothing of it is left out. */
export function readQuickStart(): QuickStart {
  const blocks = blocksOf(readPage("docs/quick-start.md"));
  const [installed, removed] = ["helm install", "helm uninstall"].map((wording) =>
    blocks.findIndex(({ text }) => text.includes(wording))
  ) as [number, number];
  assert(0 < installed && installed < removed, "the page installs, and takes away again");
  return {
    installing: blocks.slice(0, installed + 1),
    using: blocks.slice(installed + 1, removed),
    removing: blocks.slice(removed),
  };
}

/**
 * The router's door with the ports that a router has, and a pool of its own beside the drives that the page makes one of.
 * The administrator logs in with a key of their own, as nobody can type a password here.
 */
export async function adminsDoor(person: PagePerson, address: string): Promise<RouterDoor> {
  const key = join(person.folder, "admin-key");
  await hostOutput("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
  return {
    address,
    sshPort: 22,
    pool: "system:1G:btrfs",
    user: ["--user", "admin", "--authorized-key", `${key}.pub`],
  };
}

/** The router comes with drives in its own pool; those of the page are to be empty. */
export async function freeDrives(router: Pick<Router, "control">): Promise<void> {
  for (const drive of ["nvme1", "nvme2"]) {
    await router.control(`/disks/${drive}`, {
      method: "PATCH",
      body: JSON.stringify({ "raid-master": "none" }),
    });
  }
}

/** Asserts that the page's end has taken away the driver, its user and its folder. */
export async function assertGone(
  cluster: WorkloadCluster & { readonly router: Pick<Router, "control"> },
): Promise<string> {
  const work = new Workload(cluster, AbortSignal.timeout(60_000));
  await work.gone("/api/v1/namespaces", ({ metadata }) => metadata.name === "rds-csi");
  for (const path of [paths.classes, paths.drivers]) assert.deepEqual(await cluster.api.list(path), [], path);
  for (const kind of ["clusterroles", "clusterrolebindings"]) {
    const found = await cluster.api.list(`/apis/rbac.authorization.k8s.io/v1/${kind}`);
    const names = found.map(({ metadata }) => metadata.name).filter((name) => name.startsWith("rds-csi"));
    assert.deepEqual(names, [], kind);
  }
  const { files } = await cluster.router.control<{ files: { name: string }[] }>("/state");
  assert.deepEqual(files.map(({ name }) => name).filter((name) => /csi/.test(name)), []);
  const users = await cluster.router.control<{ output: string }>("/console", {
    method: "POST",
    body: JSON.stringify({ command: ":put [/user/print as-value]" }),
  });
  assert.doesNotMatch(users.output, /rds-csi/);
  return "no namespace, class, driver, role, file or user";
}
