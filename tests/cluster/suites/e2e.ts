import { join } from "node:path";
import { canGrowExt4Online } from "../../../src/cli/acceptance/scratch.ts";
import { driverDefinition } from "../e2e/definition.ts";
import { exclusions } from "../e2e/exclusions.ts";
import { type UpstreamSuite, upstreamSuites } from "../e2e/suites_wanted.ts";
import { ensureE2eTools, packE2eImages } from "../e2e/tools.ts";
import { Upstream, wantedOf } from "../e2e/upstream.ts";
import type { Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { paths } from "../kit/objects.ts";
import { Workload } from "../kit/workload.ts";

/** Upstream's suites that run at the same time: they wait most of the time. */
const workers = 3;
/** Where upstream's tests believe every kubelet to have its pods. */
const wellKnownPods = "/var/lib/kubelet/pods";

/** Kubernetes' own end-to-end tests of storage, with the driver as one that they do not know. */
export const suite: Suite = {
  what: "upstream's end-to-end tests of storage, as far as they run on this rig",
  limitMinutes: 150,
  run: async (bench) => {
    const wanted = wantedOf(upstreamSuites);
    const tools = await ensureE2eTools((line) => bench.report.say(line), bench.signal);
    const cluster = await bench.cluster({ nodes: { n1: "kubelet", n2: "kubelet" } });
    for (const image of await packE2eImages(tools, bench.folder)) {
      for (const node of cluster.nodes.values()) await node.runtime.importImage(image);
    }
    const { plane } = cluster;
    const upstream = new Upstream(bench, {
      program: tools.program,
      kubectl: cluster.node("n1").kubelet.location.tools.program("kubectl"),
      kubeconfig: await plane.kubeconfig("admin"),
      logFolder: join(plane.folder, "log"),
      suites: upstreamSuites,
      exclusions,
      definition: ({ grows }) => driverDefinition(grows && !canGrowExt4Online() ? "rds-xfs" : "rds-ext4"),
    });
    for (const one of wanted.filter(isAlone)) await testAlone(upstream, cluster, one);
    await upstream.testAll(wanted.filter((one) => !isAlone(one)), workers);
    await bench.test("with upstream's namespaces all volumes go, and leave nothing", async () => {
      const work = new Workload(cluster, bench.signal);
      for (const path of [paths.volumes, paths.attachments, paths.snapshotContents]) await work.gone(path);
      return await assertNothingLeft(cluster, bench.signal);
    });
  },
};

function isAlone({ isBelowKubelet }: UpstreamSuite): boolean {
  return isBelowKubelet === true;
}

/** Runs a suite while only the first node takes pods and these are found where upstream looks for them. */
async function testAlone(upstream: Upstream, cluster: Cluster, suite: UpstreamSuite): Promise<void> {
  const second = `${paths.nodes}/n2`;
  await cluster.api.patch(second, { spec: { unschedulable: true } });
  const pods = join(cluster.node("n1").kubelet.location.folder, "pods");
  await linkWellKnownPods(pods);
  try {
    await upstream.test(suite, ["--allowed-not-ready-nodes=1"]);
  } finally {
    await Deno.remove(wellKnownPods);
    await cluster.api.patch(second, { spec: { unschedulable: null } });
  }
}

/** A run that was killed may have left its link, which leads nowhere now; what else is there is not for this rig to touch. */
async function linkWellKnownPods(pods: string): Promise<void> {
  const found = await Deno.lstat(wellKnownPods).catch(ignoreMissing);
  if (found?.isSymlink && !await Deno.stat(wellKnownPods).then(() => true, ignoreMissing)) {
    await Deno.remove(wellKnownPods);
  }
  await Deno.symlink(pods, wellKnownPods);
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
