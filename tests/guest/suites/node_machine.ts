import type { Suite } from "../kit/suite.ts";
import { MachineFailover } from "./node_machine/failover.ts";
import { MachineHandover } from "./node_machine/handover.ts";
import { MachineKills } from "./node_machine/kills.ts";
import { MachineLife } from "./node_machine/life.ts";
import { kindsValues, MachineKinds } from "./node_machine/kinds.ts";
import { assertNothingLeft } from "./node_machine/nothing_left.ts";
import { onMachines } from "./node_machine/on_machines.ts";
import { typeQuickStart } from "./node_machine/quick_start.ts";
import { testUpstream } from "./node_machine/upstream.ts";

/** Alone, because two machines at once keep each other from starting. */
const needs = { needsGo: true, needsImage: true, alone: true } as const;

/** A guest that is a node as a user's machine is, in a cluster whose control plane is on the host. */
export const suite: Suite = {
  ...needs,
  what: "the image in a real container runtime under a real kubelet, installed by Helm, over NVMe/TCP",
  limitMinutes: 45,
  run: (bench) =>
    onMachines(bench, { nodes: ["n1"] }, (cluster) => new MachineLife(bench, cluster, "n1").steps()),
};

/** Such a guest, whose driver dies while it stages. */
export const killsSuite: Suite = {
  ...needs,
  what: "kill -9 of the driver's container at ten points of staging and publishing, under a real kubelet",
  limitMinutes: 45,
  run: (bench) =>
    onMachines(
      bench,
      { nodes: ["n1"] },
      (cluster) => new MachineKills(bench, cluster, "n1").steps(),
    ),
};

/** Such a guest, before there is a driver. */
export const quickStartSuite: Suite = {
  ...needs,
  needsRoot: true,
  what: "every command of docs/quick-start.md, typed as it stands there, with the real image",
  limitMinutes: 40,
  run: typeQuickStart,
};

/** Two such guests. */
export const failoverSuite: Suite = {
  ...needs,
  what: "of two such nodes one is frozen and thaws, and a raw block volume is handed over between them",
  limitMinutes: 40,
  run: (bench) =>
    onMachines(bench, { nodes: ["n1", "n2"] }, (cluster) => [
      ...new MachineFailover(bench, cluster).steps(),
      ...new MachineHandover(bench, cluster, "n1", "n2").steps(),
      ["with their claims all volumes have left nothing", () => assertNothingLeft(cluster, bench.signal)],
    ]),
};

/** A node whose root is read-only and lacks tools, as Talos' is. */
export const immutableSuite: Suite = {
  ...needs,
  what: "volumes on a node whose root is read-only, without nvme-cli, udev and modprobe",
  limitMinutes: 30,
  run: (bench) =>
    onMachines(
      bench,
      { nodes: ["n1"], kind: "immutable" },
      (cluster) => new MachineLife(bench, cluster, "n1").shortSteps(),
    ),
};

/** A node of Kubernetes 1.29, whose volumes are at another guest's kernel. */
export const kernelTargetSuite: Suite = {
  ...needs,
  needsBinary: true,
  what: "volumes of a node of Kubernetes 1.29 at a router in another guest, whose kernel serves NVMe/TCP",
  limitMinutes: 30,
  run: (bench) =>
    onMachines(
      bench,
      { nodes: ["n1"], routerInGuest: true, kubernetes: "1.29" },
      (cluster) => new MachineLife(bench, cluster, "n1").shortSteps(),
    ),
};

/** A node with volumes of the kinds that are off by default. */
export const kindsSuite: Suite = {
  ...needs,
  needsBinary: true,
  what: "encrypted volumes and a shared directory, on a node as a user's machine is",
  limitMinutes: 30,
  run: (bench) =>
    onMachines(
      bench,
      { nodes: ["n1"], routerInGuest: true, values: kindsValues },
      (cluster) => new MachineKinds(bench, cluster, "n1").steps(),
    ),
};

/** Kubernetes' own tests of storage against shared directories, with an NFS server in another guest. */
export const e2eDirectorySuite: Suite = {
  ...needs,
  needsBinary: true,
  what: "upstream's end-to-end tests of storage, of shared directories on such a node",
  limitMinutes: 150,
  run: testUpstream,
};
