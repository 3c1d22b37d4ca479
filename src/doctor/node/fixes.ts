import { advice, type Fix } from "../../volume/model/finding.ts";

/**
 * The fixes for findings on a node. NODES and `…` stand for what only a person knows.
 *
 * A test runs every entry that has commands: it resolves its finding, and changes nothing else.
 */
export const nodeFixes = {
  deviceFolder: () => advice("mount the host's /dev into the container, writable"),
  kubeletFolder: () => advice("set --kubelet-dir, or mount the host's kubelet folder there"),
  propagation: (): Fix => ({
    before:
      "in a container: mountPropagation: Bidirectional on the kubelet's folder (and privileged); on the host: ",
    commands: ["mount --make-rshared /"],
  }),
  stateInMemory: () =>
    advice("set --state-dir to a folder on the node's disk, such as below the kubelet's folder"),
  stateReadOnly: () => advice("mount it writable; the executable may write below the kubelet's folder only"),
  stateAbsent: () => advice("no action if the node service has never run here: it makes the folder"),
  toolMissing: (name: string) => advice(`install the package ${name}; the driver's image has it`),
  toolUnclear: (name: string) => advice(`run it by hand: ${name}`),
  loadTransport: (): Fix => ({
    before: "on the host, and for the next boot: ",
    commands: ["modprobe nvme-tcp", "echo nvme-tcp > /etc/modules-load.d/nvme-tcp.conf"],
    after:
      " (Talos: machine.kernel.modules with the name nvme_tcp; k3s and k0s: as on the system below them)",
  }),
  modulesDisabled: () => advice("load nvme_tcp at boot, before the kernel is locked against loading modules"),
  modulesMissing: () =>
    advice("install the package of the kernel's modules, or a kernel with CONFIG_NVME_TCP"),
  layerMissing: () =>
    advice(
      "install the package of the kernel's modules, or a kernel with CONFIG_DM_MULTIPATH; without it, deviceLayer " +
        "multipath refuses to stage, and auto stages without a device layer",
    ),
  shortTimeout: () =>
    advice(
      "check ctrlLossTmo of the volume's StorageClass; a change takes effect when the volume is staged again",
    ),
  targetAddress: () => advice("set --nvme-address ADDRESS"),
  targetSilent: () =>
    advice(
      "from this node's host: check address, route, firewall and the router; rds-csi doctor --rds-address … checks the router",
    ),
  exportGone: () =>
    advice(
      "it was unpublished from this node, or the router is still booting: rds-csi describe shows which",
    ),
  connectionUnowned: (id: string, nqn: string) =>
    advice(`rds-csi describe ${id}; if nothing uses it: rds-csi detach ${nqn}`),
  stateDamaged: (id: string, file: string) =>
    advice(`if rds-csi describe ${id} shows neither a mount nor a connection: remove ${file}`),
  otherName: (id: string) => advice(`rds-csi describe ${id} shows what uses it`),
  notConnected: () =>
    advice(
      "wait: the kubelet stages it again, or unstages it; else check the way to the router: rds-csi doctor --node",
    ),
  wayToRouter: () => advice("check the way to the router: rds-csi doctor --node"),
  deviceRefused: () =>
    advice(
      "check the way to the router: rds-csi doctor --node; where that is well, the node service's log says why what " +
        "came back was refused",
    ),
  nextPod: () =>
    advice("delete the pod, so that the kubelet stages and publishes the volume for the next one"),
  kernelLog: () => advice("see the kernel's log (dmesg); resolve the error, then delete the pod"),
  stagingUnfinished: () => advice("wait: the kubelet continues it"),
  nodeId: () => advice("set --node-id to the node's name in the cluster, if that differs"),
  otherHost: (nqn: string) =>
    advice(`rds-csi describe shows what uses it; if nothing does: rds-csi detach ${nqn}`),
  connectionDown: () => advice("see nvme-target: writers wait for the router until ctrl_loss_tmo"),
} as const;
