import { driverDefinition, type Timeouts } from "../../../cluster/e2e/definition.ts";
import { type Exclusion, exclusions } from "../../../cluster/e2e/exclusions.ts";
import { type UpstreamSuite, upstreamSuites } from "../../../cluster/e2e/suites_wanted.ts";
import { type E2eTools, packE2eImages } from "../../../cluster/e2e/tools.ts";
import { isWanted, Upstream } from "../../../cluster/e2e/upstream.ts";
import { paths } from "../../../cluster/kit/objects.ts";
import { secondsSince } from "../../../cluster/kit/waiting.ts";
import { Workload } from "../../../cluster/kit/workload.ts";
import { type Bench, keptFolder } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { assertNothingLeft } from "./nothing_left.ts";

/** Upstream's suites that run at the same time: they wait most of the time, but an emulated node has not much to give. */
const workers = 2;

/** In emulation everything starts slowly. */
const timeouts: Timeouts = {
  PodStart: "15m",
  PodStartShort: "6m",
  PodStartSlow: "20m",
  PodDelete: "15m",
  ClaimProvision: "15m",
  ClaimProvisionShort: "5m",
  DataSourceProvision: "15m",
  ClaimBound: "10m",
  PVReclaim: "10m",
  PVBound: "10m",
  PVCreate: "10m",
  PVDelete: "15m",
  SnapshotCreate: "15m",
  SnapshotDelete: "15m",
};

/** A driver as upstream's tests meet it on a machine. */
export interface MachineSubject {
  readonly suites: readonly UpstreamSuite[];
  readonly exclusions: readonly Exclusion[];
  /** What upstream is told of it. */
  readonly definition: object;
}

/** Volumes of the router's NVMe/TCP target. */
export const blockSubject: MachineSubject = {
  suites: upstreamSuites,
  exclusions,
  definition: driverDefinition("rds-ext4", timeouts),
};

/** Runs upstream's suites against a driver that is installed on the only machine of a cluster. */
export async function testUpstream(
  bench: Bench,
  cluster: MachineCluster,
  tools: E2eTools,
  subject: MachineSubject,
): Promise<void> {
  const isReady = await bench.test("the images of upstream's pods are on the node", async () => {
    const started = performance.now();
    const archives = await packE2eImages(tools, bench.folder);
    for (const node of cluster.nodes) {
      for (const archive of archives) await node.importImage(archive);
    }
    return `${archives.length} after ${secondsSince(started)} s`;
  });
  if (!isReady) return;
  await Deno.mkdir(keptFolder, { recursive: true });
  const upstream = new Upstream(bench, {
    program: tools.program,
    kubectl: cluster.tools.program("kubectl"),
    kubeconfig: await cluster.plane.kubeconfig("admin"),
    logFolder: keptFolder,
    suites: subject.suites,
    exclusions: subject.exclusions,
    definition: () => subject.definition,
  });
  await upstream.testAll(subject.suites.filter(isWanted), workers);
  await bench.test("with upstream's namespaces all volumes go, and leave nothing", async () => {
    const work = new Workload(cluster, bench.signal);
    for (const path of [paths.volumes, paths.attachments, paths.snapshotContents]) await work.gone(path);
    return await assertNothingLeft(cluster, bench.signal);
  });
}
