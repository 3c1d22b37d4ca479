import { join } from "node:path";
import type { Exclusion, Scope } from "../../../cluster/e2e/exclusions.ts";
import type { UpstreamSuite } from "../../../cluster/e2e/suites_wanted.ts";
import { type E2eTools, ensureE2eTools, packE2eImages } from "../../../cluster/e2e/tools.ts";
import { Upstream, wantedOf } from "../../../cluster/e2e/upstream.ts";
import { paths } from "../../../cluster/kit/objects.ts";
import { secondsSince } from "../../../cluster/kit/waiting.ts";
import { Workload } from "../../../cluster/kit/workload.ts";
import { type Bench, keptFolder } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { type Machines, withMachines } from "./on_machines.ts";

/** Upstream's suites that run at the same time: they wait most of the time. */
const workers = 6;

/** A driver as upstream's tests meet it on a machine. */
export interface MachineSubject {
  /** The folder of its logs. */
  readonly name: string;
  readonly suites: readonly UpstreamSuite[];
  readonly exclusions: readonly Exclusion[];
  /** For what reasons specifications may skip themselves. */
  readonly scopes: readonly Scope[];
  /** What upstream is told of it. */
  readonly definition: object;
  /** What an administrator does before there are volumes. */
  prepare?(cluster: MachineCluster): Promise<void>;
  /** Asserts that nothing of its volumes is left. */
  assertNothingLeft(cluster: MachineCluster, signal: AbortSignal): Promise<string>;
}

/** Runs upstream's suites against a driver on a machine. */
export async function testUpstream(bench: Bench, machines: Machines, subject: MachineSubject): Promise<void> {
  const wanted = wantedOf(subject.suites);
  const tools = await ensureE2eTools((line) => bench.report.say(line), bench.signal);
  await withMachines(bench, machines, async (cluster) => {
    const isReady = await bench.test(
      "the images of upstream's pods are on the node",
      () => importImages(bench, cluster, tools),
    );
    if (!isReady) return;
    await subject.prepare?.(cluster);
    const upstream = await upstreamAt(bench, cluster, tools, subject);
    await upstream.testAll(wanted, workers);
    await bench.test("with upstream's namespaces all volumes go, and leave nothing", async () => {
      const work = new Workload(cluster, bench.signal);
      for (const path of [paths.volumes, paths.attachments, paths.snapshotContents]) await work.gone(path);
      return await subject.assertNothingLeft(cluster, bench.signal);
    });
  });
}

async function importImages(bench: Bench, cluster: MachineCluster, tools: E2eTools): Promise<string> {
  const started = performance.now();
  const archives = await packE2eImages(tools, bench.folder);
  for (const node of cluster.nodes) {
    for (const archive of archives) await node.importImage(archive);
  }
  return `${archives.length} after ${secondsSince(started)} s`;
}

async function upstreamAt(
  bench: Bench,
  cluster: MachineCluster,
  tools: E2eTools,
  { name, suites, exclusions, scopes, definition }: MachineSubject,
): Promise<Upstream> {
  const logFolder = join(keptFolder, name);
  await Deno.remove(logFolder, { recursive: true }).catch(ignoreMissing);
  await Deno.mkdir(logFolder, { recursive: true });
  return new Upstream(bench, {
    program: tools.program,
    kubectl: cluster.tools.program("kubectl"),
    kubeconfig: await cluster.plane.kubeconfig("admin"),
    logFolder,
    suites,
    exclusions,
    scopes,
    definition: () => definition,
  });
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
