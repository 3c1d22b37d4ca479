import assert from "node:assert/strict";
import type { OlderKubernetes } from "../../../cluster/kit/go_build.ts";
import { usualKernel } from "../../kit/kernel.ts";
import { type Node, paths } from "../../../cluster/kit/objects.ts";
import { secondsSince } from "../../../cluster/kit/waiting.ts";
import type { Bench } from "../../kit/suite.ts";
import { MachineCluster, machineDisk } from "../../machine/cluster.ts";
import { keepLogs } from "../../machine/logs.ts";
import { type MachineKind, machineOptions } from "../../machine/node.ts";
import { installChart, releaseReady } from "../../machine/release.ts";
import { type MakeRouter, routerGuestOptions, routerInGuest, routerOnHost } from "../../machine/router.ts";

/** Tests that each continue where the one before has ended. */
export type Steps = readonly (readonly [name: string, body: () => Promise<string>])[];

/** What a suite of machines runs on. */
export interface Machines {
  /** The names of the nodes, each of which is a guest's. */
  readonly nodes: readonly string[];
  /** @default {"default"} */
  readonly kind?: MachineKind;
  /** Which Kubernetes it is, if not the newest. */
  readonly kubernetes?: OlderKubernetes;
  /** Whether the router is in a guest, whose kernel serves NVMe/TCP. */
  readonly routerInGuest?: boolean;
  /** Makes a router that is in no guest. @default {routerOnHost} */
  readonly makeRouter?: MakeRouter;
  /** Values of the chart beside those that say which router there is. */
  readonly values?: object;
}

/** Boots machines, installs the driver on them as the quick start says, goes on with a suite's own steps, and ends all. */
export async function onMachines(
  bench: Bench,
  machines: Machines,
  steps: (cluster: MachineCluster) => Steps,
): Promise<void> {
  await withBareMachines(bench, machines, async (cluster) => {
    await bench.story([installation(bench, cluster, machines), ...steps(cluster)]);
  });
}

/** The same with tests that do not build on each other; they are not begun unless the driver is there. */
export async function withMachines(
  bench: Bench,
  machines: Machines,
  body: (cluster: MachineCluster) => Promise<void>,
): Promise<void> {
  await withBareMachines(bench, machines, async (cluster) => {
    if (await bench.story([installation(bench, cluster, machines)])) await body(cluster);
  });
}

/** Boots machines without the driver, lets `body` go on, and ends all. */
export async function withBareMachines(
  bench: Bench,
  machines: Machines,
  body: (cluster: MachineCluster) => Promise<void>,
): Promise<void> {
  const { nodes, kind = "default" } = machines;
  const options = machineOptions(await machineDisk(bench), nodes.length === 1 ? 2 : 1, kind);
  const guests = machines.routerInGuest === true
    ? await bench.guests(["router", ...nodes], (name) => name === "router" ? routerGuestOptions : options)
    : undefined;
  const makeRouter = guests === undefined
    ? machines.makeRouter ?? routerOnHost
    : routerInGuest(guests["router"]!);
  const cluster = await MachineCluster.start(bench, nodes, makeRouter, machines.kubernetes);
  try {
    const boot = async (name: string) => {
      await cluster.join(bench, guests?.[name] ?? await bench.guest({ ...options, name }), kind);
    };
    const isReady = await bench.story([
      ["the kubelet of each guest registers a node, which is ready", () => begin(cluster, nodes, boot)],
    ]);
    if (isReady) await body(cluster);
  } finally {
    if (bench.report.counts.failed > 0) await keepLogs(bench, cluster);
    const problems = await cluster.stop();
    await bench.test("the router ends well", () => {
      assert.deepEqual(problems, []);
      return Promise.resolve("nothing to complain of");
    });
  }
}

function installation(bench: Bench, cluster: MachineCluster, machines: Machines): Steps[number] {
  return ["Helm installs the chart, and all its pods become ready", () => install(bench, cluster, machines)];
}

async function begin(
  cluster: MachineCluster,
  nodes: readonly string[],
  boot: (name: string) => Promise<void>,
): Promise<string> {
  const started = performance.now();
  await Promise.all(nodes.map(boot));
  const seconds = secondsSince(started);
  const versions = await Promise.all(nodes.map((name) => versionsOf(cluster, name)));
  return `ready after ${seconds} s: ${[...new Set(versions)].join("; ")}`;
}

const kernels = { stable: /^6\.1\./, backports: /^6\.(?!1\.)/ };

async function versionsOf(cluster: MachineCluster, name: string): Promise<string> {
  const { status } = await cluster.api.get<NodeStatus>(`${paths.nodes}/${name}`);
  const { kernelVersion, containerRuntimeVersion, kubeletVersion } = status.nodeInfo;
  assert.match(kernelVersion, kernels[usualKernel()]);
  assert.match(containerRuntimeVersion, /^containerd:\/\//);
  return `Linux ${kernelVersion}, ${containerRuntimeVersion}, kubelet ${kubeletVersion}`;
}

type NodeStatus = Node & {
  readonly status: {
    readonly nodeInfo: Readonly<
      Record<"kernelVersion" | "containerRuntimeVersion" | "kubeletVersion", string>
    >;
  };
};

async function install(bench: Bench, cluster: MachineCluster, machines: Machines): Promise<string> {
  const started = performance.now();
  await installChart(cluster, machines.values);
  const pods = await releaseReady(cluster, bench.signal);
  return `${pods.join(", ")} after ${secondsSince(started)} s`;
}
