import assert from "node:assert/strict";
import { type Node, paths } from "../../cluster/kit/objects.ts";
import { secondsSince } from "../../cluster/kit/waiting.ts";
import type { Bench, Suite } from "../kit/suite.ts";
import { MachineCluster } from "../machine/cluster.ts";
import { installChart, releaseReady } from "../machine/release.ts";
import { MachineLife } from "./node_machine/life.ts";

/** The name of the guest and of its node. */
const name = "n1";

/** A guest that is a node as a user's machine is, in a cluster whose control plane is on the host. */
export const suite: Suite = {
  what: "the image in a real container runtime under a real kubelet, installed by Helm, over NVMe/TCP",
  limitMinutes: 45,
  needsGo: true,
  needsImage: true,
  run: async (bench) => {
    const cluster = await MachineCluster.start(bench, [name]);
    try {
      await bench.story([
        ["the kubelet of the guest registers a node, which is ready", () => begin(bench, cluster)],
        ["Helm installs the chart, and all its pods become ready", () => install(bench, cluster)],
        ...new MachineLife(bench, cluster, name).steps(),
      ]);
    } finally {
      const problems = await cluster.stop();
      await bench.test("the router ends well", () => {
        assert.deepEqual(problems, []);
        return Promise.resolve("nothing to complain of");
      });
    }
  },
};

async function begin(bench: Bench, cluster: MachineCluster): Promise<string> {
  const started = performance.now();
  const { guest } = await cluster.boot(bench, name);
  const { status } = await cluster.api.get<NodeStatus>(`${paths.nodes}/${name}`);
  const { kernelVersion, containerRuntimeVersion, kubeletVersion } = status.nodeInfo;
  assert.match(kernelVersion, /^6\.1\./);
  assert.match(containerRuntimeVersion, /^containerd:\/\//);
  const versions = `Linux ${kernelVersion}, ${containerRuntimeVersion}, kubelet ${kubeletVersion}`;
  return `booted after ${guest.bootSeconds.toFixed(1)} s, ready after ${
    secondsSince(started)
  } s: ${versions}`;
}

type NodeStatus = Node & {
  readonly status: {
    readonly nodeInfo: Readonly<
      Record<"kernelVersion" | "containerRuntimeVersion" | "kubeletVersion", string>
    >;
  };
};

async function install(bench: Bench, cluster: MachineCluster): Promise<string> {
  const started = performance.now();
  await installChart(cluster);
  const pods = await releaseReady(cluster, name, bench.signal);
  return `${pods.join(", ")} after ${secondsSince(started)} s`;
}
