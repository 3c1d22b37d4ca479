import assert from "node:assert/strict";
import { findLeftovers } from "../../sanity/leftovers.ts";
import type { Cluster } from "./cluster.ts";
import { paths } from "./objects.ts";
import type { Router } from "./router.ts";
import { until } from "./waiting.ts";

/**
 * Asserts that deleting the claims has removed everything of the driver: from the API, from the router, and from the
 * nodes, whose kubelets get the time that they need.
 */
export async function assertNothingLeft(cluster: Cluster, signal: AbortSignal): Promise<string> {
  for (const path of [paths.attachments, paths.volumes]) {
    assert.deepEqual((await cluster.api.list(path)).map(({ metadata }) => metadata.name), [], path);
  }
  await until("the nodes to be as they were", async () => (await onNodes(cluster)).length === 0, {
    limitSeconds: 60,
    everyMs: 500,
    signal,
    state: async () => (await onNodes(cluster)).join(", "),
  });
  for (const router of cluster.routers.values()) {
    assert.deepEqual(await leftOnRouter(router), []);
    assert.deepEqual(await router.violations(), [], "the driver broke a rule of the router's");
  }
  assert.deepEqual(await cluster.fallen(), []);
  return "no attachment, disk, file, mount, loop device, state";
}

/** The volumes and files on the router. */
export async function leftOnRouter(router: Pick<Router, "control">): Promise<string[]> {
  const { disks, files } = await router.control<
    { disks: { slot: string; type: string }[]; files: { name: string; type: string }[] }
  >("/state");
  return [
    ...disks.filter(({ type }) => type === "file").map(({ slot }) => `disk ${slot}`),
    // The names go some rounds later.
    ...files.map(({ name }) => name).filter((name) => /metal-csi\/(?!names-of-)./.test(name)).map((name) =>
      `file ${name}`
    ),
  ];
}

async function onNodes(cluster: Cluster): Promise<string[]> {
  const left: string[] = [];
  for (const { kubelet, stateFolder } of cluster.nodes.values()) {
    const { mounts, loops } = await findLeftovers(kubelet.location.folder);
    left.push(...mounts, ...loops);
    // What a node knows of contents stays: nobody tells it that a volume was deleted.
    const stays = (path: string) =>
      path === `${stateFolder}/lock` || path.startsWith(`${stateFolder}/known/`);
    left.push(...filesBelow(stateFolder).filter((path) => !stays(path)));
  }
  for (const { backing } of cluster.routers.values()) left.push(...(await findLeftovers(backing)).loops);
  return left;
}

function filesBelow(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesBelow(`${folder}/${name}`) : [`${folder}/${name}`]
  );
}
