import { join } from "node:path";
import { directoryDefinition } from "../../../cluster/e2e/definition.ts";
import { directoryScopes, exclusions, outOfScope } from "../../../cluster/e2e/exclusions.ts";
import type { UpstreamSuite } from "../../../cluster/e2e/suites_wanted.ts";
import { type E2eTools, ensureE2eTools, packE2eImages } from "../../../cluster/e2e/tools.ts";
import { Upstream, wantedOf } from "../../../cluster/e2e/upstream.ts";
import { paths } from "../../../cluster/kit/objects.ts";
import { secondsSince } from "../../../cluster/kit/waiting.ts";
import { Workload } from "../../../cluster/kit/workload.ts";
import { type Bench, keptFolder } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { assertNoDirectoryLeft, assertNothingLeft } from "./nothing_left.ts";
import { withMachines } from "./on_machines.ts";
import { directoryValues, makeSharedFolder } from "./shared_folder.ts";

/** Upstream's suites that run at the same time: they wait most of the time. */
const workers = 6;

/** The longest first. Why others are not among them is in tests/guest/README.md. */
const suites: readonly UpstreamSuite[] = [
  { name: "subPath", mustPass: /should support existing directory$/ },
  {
    name: "multiVolume",
    mustPass: /access to two volumes with the same volume mode .* on the same node/,
  },
  { name: "provisioning", mustPass: /should provision storage with mount options$/ },
  { name: "volumes", mustPass: /should store data$/ },
  { name: "volumeMode", mustPass: /should not mount \/ map unused volumes in a pod/ },
  { name: "volumeIO", mustPass: /should write files of various sizes/ },
];

const withTwoNodes = {
  specs: / on different node/,
  why: "take two nodes; a second machine would halve the speed of the first",
};

/** Runs upstream's suites against the driver of shared directories on a machine. */
export async function testUpstream(bench: Bench): Promise<void> {
  const wanted = wantedOf(suites);
  const tools = await ensureE2eTools((line) => bench.report.say(line), bench.signal);
  await withMachines(
    bench,
    { nodes: ["n1"], routerInGuest: true, values: directoryValues },
    async (cluster) => {
      const isReady = await bench.test(
        "the images of upstream's pods are on the node",
        () => importImages(bench, cluster, tools),
      );
      if (!isReady) return;
      await makeSharedFolder(cluster.router);
      const upstream = await upstreamAt(bench, cluster, tools);
      await upstream.testAll(wanted, workers);
      await bench.test("with upstream's namespaces all volumes go, and leave nothing", async () => {
        const work = new Workload(cluster, bench.signal);
        for (const path of [paths.volumes, paths.attachments, paths.snapshotContents]) await work.gone(path);
        const left = await assertNothingLeft(cluster, bench.signal);
        return `${left}; ${await assertNoDirectoryLeft(cluster, bench.signal)}`;
      });
    },
  );
}

async function importImages(bench: Bench, cluster: MachineCluster, tools: E2eTools): Promise<string> {
  const started = performance.now();
  const archives = await packE2eImages(tools, bench.folder);
  for (const node of cluster.nodes) {
    for (const archive of archives) await node.importImage(archive);
  }
  return `${archives.length} after ${secondsSince(started)} s`;
}

async function upstreamAt(bench: Bench, cluster: MachineCluster, tools: E2eTools): Promise<Upstream> {
  const logFolder = join(keptFolder, "e2e_directory");
  await Deno.remove(logFolder, { recursive: true }).catch(ignoreMissing);
  await Deno.mkdir(logFolder, { recursive: true });
  return new Upstream(bench, {
    program: tools.program,
    kubectl: cluster.tools.program("kubectl"),
    kubeconfig: await cluster.plane.kubeconfig("admin"),
    logFolder,
    suites,
    exclusions: [withTwoNodes, ...exclusions],
    scopes: [...outOfScope, ...directoryScopes],
    definition: () => directoryDefinition,
  });
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
