import assert from "node:assert/strict";
import { join } from "node:path";
import { ControlPlane } from "../../cluster/kit/control_plane.ts";
import { type Node, paths } from "../../cluster/kit/objects.ts";
import { ensureTools } from "../../cluster/kit/tools.ts";
import { secondsSince } from "../../cluster/kit/waiting.ts";
import { archivePath } from "../../image/release_files.ts";
import { MachineNode, machineOptions } from "../machine/node.ts";
import { ensureRootDisk } from "../machine/root_disk.ts";
import type { Bench, Suite } from "../kit/suite.ts";

/** The name of the guest and of its node. */
const name = "n1";

/** A guest that is a node as a user's machine is, in a cluster whose control plane is on the host. */
export const suite: Suite = {
  what: "a node of Kubernetes in a guest: containerd, runc and a kubelet, with the driver's image imported",
  limitMinutes: 20,
  needsGo: true,
  needsImage: true,
  run: async (bench) => {
    const tools = await ensureTools((line) => bench.report.say(line), bench.signal);
    const disk = await ensureRootDisk(tools, archivePath("amd64"), (line) => bench.report.say(line));
    const plane = await ControlPlane.prepare(join(bench.folder, "plane"), tools, [name]);
    try {
      await plane.start(bench.signal);
      await bench.test("the kubelet of the guest registers a node, which is ready", () => {
        return joinCluster(bench, plane, disk);
      });
    } finally {
      await plane.stop();
    }
  },
};

async function joinCluster(bench: Bench, plane: ControlPlane, disk: string): Promise<string> {
  const started = performance.now();
  const guest = await bench.guest(machineOptions(name, disk));
  const booted = secondsSince(started);
  await new MachineNode(guest, plane).start(bench.signal);
  const { status } = await plane.api.get<NodeStatus>(`${paths.nodes}/${name}`);
  const { kernelVersion, containerRuntimeVersion, kubeletVersion } = status.nodeInfo;
  assert.match(kernelVersion, /^6\.1\./);
  assert.match(containerRuntimeVersion, /^containerd:\/\//);
  return `booted after ${booted} s, ready after ${
    secondsSince(started)
  } s: Linux ${kernelVersion}, ${containerRuntimeVersion}, kubelet ${kubeletVersion}`;
}

type NodeStatus = Node & {
  readonly status: {
    readonly nodeInfo: Readonly<
      Record<"kernelVersion" | "containerRuntimeVersion" | "kubeletVersion", string>
    >;
  };
};
