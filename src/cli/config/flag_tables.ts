import type { FlagTable } from "../flags.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../../telemetry/log.ts";
import { defaultSettleMs } from "../../volume/rules/absence.ts";
import { defaultFenceSettleMs } from "../../volume/rules/fence.ts";
import { deviceLayers } from "../../volume/model/device_layer.ts";
import { maxNodeIdBytes } from "../../volume/model/ids/ids.ts";
import { clusterFlags } from "./cluster.ts";
import { legacyFlags } from "./legacy_flags.ts";

/** Flags of every command that connects to the router like a controller. */
export const routerFlags: FlagTable = {
  "config": {
    form: "text",
    env: ["RDS_CONFIG"],
    help: "File (YAML) of several routers, instead of the flags for one: see docs/reference/config.md.",
  },
  "rds-address": {
    key: "address",
    form: "text",
    env: ["RDS_ADDRESS"],
    help: "Address of the router's SSH service.",
  },
  "rds-port": {
    key: "port",
    form: "integer",
    least: 1,
    most: 65535,
    fallback: "22",
    env: ["RDS_PORT"],
    help: "Port of the router's SSH service.",
  },
  "rds-user": {
    key: "user",
    form: "text",
    fallback: "rds-csi",
    env: ["RDS_USER"],
    help: "The router's user; policies ssh, read and write suffice.",
  },
  "rds-key": {
    key: "keyFile",
    form: "text",
    aliases: ["rds-key-file"],
    env: ["RDS_KEY"],
    help: "File with the user's private key (ed25519 or RSA).",
  },
  "rds-password-file": {
    key: "passwordFile",
    form: "text",
    env: ["RDS_PASSWORD_FILE"],
    help: "File with the user's password, if there is no key.",
  },
  "rds-host-key": {
    key: "hostKeys",
    form: "list",
    env: ["RDS_HOST_KEY"],
    hasCommas: true,
    help:
      "The router's host key: an OpenSSH public key, a known_hosts line, or the absolute path of a file of them.",
  },
  "rds-insecure-skip-verify": {
    form: "switch",
    help: "Accept any host key. For tests only: any machine that answers gets the password.",
  },
  "backend": {
    form: "text",
    fallback: "default",
    help:
      "Name of the router in StorageClasses, volume contexts and metrics. With --config: a command's router.",
  },
  "base-path": {
    key: "basePaths",
    form: "list",
    fallback: "/storage-pool/metal-csi",
    aliases: ["rds-volume-base-path"],
    env: ["RDS_BASE_PATH"],
    help:
      "Folder on the router for volumes; the first one is the default. Required with --kind directory: its first name is the mount point of the share.",
  },
  "nvme-address": {
    key: "nvmeAddress",
    form: "text",
    env: ["RDS_NVME_ADDRESS"],
    help: "Address where nodes reach the volumes, or up to 8 with commas; default is --rds-address.",
  },
  "nvme-port": {
    key: "nvmePort",
    form: "integer",
    least: 1,
    most: 65535,
    fallback: "4420",
    help: "Port of the volumes' exports.",
  },
  "nqn-prefix": {
    form: "text",
    fallback: "nqn.2000-02.com.mikrotik",
    help: "Prefix of the NQNs of this driver's exports. Change it only while no node has a volume.",
  },
  "cluster-id": {
    form: "text",
    env: ["RDS_CLUSTER_ID"],
    help:
      "Id that marks this cluster's volumes, so that clusters can share a router. Never change it while volumes exist. hash:XXXXXXXX is the mark in the names of a lost cluster's files. In a cluster the default of rds-csi serve is the uid of the namespace kube-system.",
  },
  "known-node": {
    form: "list",
    help: "Id of a node that volumes may be published to, if there is no cluster to ask.",
  },
  "settle-time": {
    key: "settleTime",
    form: "duration",
    most: 3_600_000,
    fallback: `${defaultSettleMs / 1000}s`,
    help: "How long after its boot a router may still list more disks.",
  },
  "unexport-grace": {
    key: "unexportGrace",
    form: "duration",
    most: 300_000,
    fallback: "10s",
    help: "How long a router may still serve an export after its withdrawal.",
  },
  "overcommit": {
    key: "overcommit",
    form: "number",
    least: 0.1,
    most: 100,
    fallback: "1",
    help: "How much of a pool the driver may promise; 1 is exactly its size.",
  },
  "router-profile": {
    key: "routerProfile",
    form: "text",
    help:
      "Profile of this router, from `rds-csi doctor --probe`: for controllers; --unexport-grace follows from it " +
      "unless that flag is given.",
  },
};

/** Flags of a command about one volume, which may be named by its object in the cluster. */
export const volumeFlags: FlagTable = {
  ...routerFlags,
  // These are about making volumes.
  overcommit: { ...routerFlags["overcommit"]!, hidden: true },
  "known-node": { ...routerFlags["known-node"]!, hidden: true },
  kubeconfig: clusterFlags["kubeconfig"]!,
};

/** The most that slot and epoch add to the prefix of an NQN: `:<32 characters>:<9 digits>-<8 digits>`. */
export const maxNqnTailBytes = 52;

/** Flags of a controller's audits. */
const auditFlags: FlagTable = {
  "audit-interval": {
    form: "duration",
    most: 604_800_000,
    fallback: "1h",
    help: "How often to audit the router for objects without an owner; 0s for never.",
  },
  "orphan-delete-older-than": {
    form: "duration",
    least: 3_600_000,
    help:
      "Delete objects without an owner for this long, like `rds-csi audit --delete-older-than`; at least 1h. Default: delete nothing.",
  },
};

/** The flag of a controller's readings of arrays and drives. */
const healthFlags: FlagTable = {
  "health-interval": {
    form: "duration",
    most: 3_600_000,
    fallback: "15m",
    help:
      "How often to read the health of the router's arrays, drives and Btrfs pools; at least 1m, or 0s for never.",
  },
};

/** Flags of every command on a node: the same as those of `rds-csi serve`. */
export const nodeFlags: FlagTable = {
  "node-id": {
    form: "text",
    env: ["NODE_ID", "KUBE_NODE_NAME"],
    help: `Id of this node, at most ${maxNodeIdBytes} characters; usually the Kubernetes node's name.`,
  },
  "connector": {
    form: "text",
    choices: ["nvme-tcp", "loop"],
    fallback: "nvme-tcp",
    help: "How this node reaches volumes: the kernel's NVMe/TCP, or loop devices on the simulator's files.",
  },
  "loop-backing": { form: "text", help: "The simulator's --backing folder, for --connector loop." },
  "state-dir": {
    form: "text",
    fallback: "/var/lib/kubelet/plugins/rds.csi.srvlab.io/state",
    env: ["RDS_STATE_DIR"],
    help:
      "Folder with the state of staged volumes on this node; it must survive reboots. Only one process may use it.",
  },
  "topology": {
    form: "list",
    help:
      "Topology segment of this node, as key=value: it reaches the routers of --config that have the same. Give every key that they have.",
  },
  "max-volumes-per-node": {
    form: "integer",
    least: 0,
    most: 4096,
    fallback: "0",
    help: "Maximum number of volumes on this node; 0 for no limit.",
  },
  "fence-interval": {
    form: "duration",
    least: 1_000,
    most: 600_000,
    fallback: "30s",
    help: "How often a node checks whether the router has withdrawn a volume from it.",
  },
  "fence-settle-time": {
    form: "duration",
    least: 3_000,
    most: 3_600_000,
    fallback: `${defaultFenceSettleMs / 1000}s`,
    help:
      "After 10 times this long a volume being unstaged that the router does not offer is given up; at least 3 times --fence-interval.",
  },
  "fstrim-interval": {
    form: "duration",
    most: 1_728_000_000,
    fallback: "0s",
    help: "How often a node trims the file systems of its volumes; at least 1m, or 0s for never.",
  },
  "device-layer": {
    form: "text",
    choices: deviceLayers,
    fallback: "none",
    help:
      "Whether volumes whose StorageClass does not set deviceLayer let writers wait while the router reboots: auto if the kernel has dm-multipath, multipath always, none never.",
  },
  "nqn-prefix": routerFlags["nqn-prefix"]!,
};

/** Flags of `rds-csi serve`. */
export const serveFlags: FlagTable = {
  "mode": {
    form: "text",
    choices: ["controller", "node", "all"],
    fallback: "all",
    help: "Which services to serve.",
  },
  "kind": {
    form: "text",
    choices: ["block", "directory"],
    fallback: "block",
    help: "Block volumes, or directories of one share over NFS; each is a CSI driver of its own.",
  },
  "controller": { form: "switch", help: "Serve the controller; instead of --mode." },
  "node": { form: "switch", help: "Serve the node; instead of --mode." },
  "endpoint": {
    form: "text",
    fallback: "unix:///csi/csi.sock",
    env: ["CSI_ENDPOINT"],
    help: "Where to serve gRPC: unix:///path, unix:/path, a bare path, or tcp://127.0.0.1:port for tests.",
  },
  "metrics-address": {
    form: "text",
    fallback: ":9809",
    help: "Where to serve the status page at /, /status.json, /metrics, /healthz and /readyz: host:port, " +
      "[IPv6]:port, or :port for every IPv4 address; empty to disable.",
  },
  "status-address": {
    form: "text",
    fallback: "",
    help:
      "Where to serve the status page to other machines, like --metrics-address. By default a controller serves it there to all, a node only to its own.",
  },
  "driver-name": {
    form: "text",
    fallback: "rds.csi.srvlab.io",
    env: ["RDS_DRIVER_NAME"],
    help: "Name of the CSI driver. With --kind directory the default is rds-directory.csi.srvlab.io.",
  },
  "register": {
    form: "switch",
    help: "Register the driver with this node's kubelet.",
  },
  "kubelet-path": {
    form: "text",
    fallback: "/var/lib/kubelet",
    env: ["RDS_KUBELET_PATH"],
    help: "The kubelet's folder, for --register.",
  },
  "kubelet-endpoint": {
    form: "text",
    help: "Path of --endpoint's socket as the kubelet sees it, for --register; default is the same path.",
  },
  "log-level": {
    form: "text",
    choices: LOG_LEVELS,
    fallback: "info",
    help:
      "Lowest level to log. SIGUSR2 lowers it by one, and after debug sets it back: kubectl exec POD -c driver -- sh -c 'kill -USR2 1', in a node's pod with the number of rds-csi for 1.",
  },
  "log-format": {
    form: "text",
    choices: LOG_FORMATS,
    fallback: "json",
    help: "Format of a log line: JSON, or text for people (logfmt).",
  },
  ...routerFlags,
  ...clusterFlags,
  ...auditFlags,
  ...healthFlags,
  ...nodeFlags,
  "volume-metrics": {
    form: "switch",
    help:
      "Export the kernel's counters of each staged volume's device: each adds series to Prometheus. Needs Linux 5.15.",
  },
  ...legacyFlags,
};

/** Flags of a command that compares volumes with the cluster's objects of them. */
export const objectFlags: FlagTable = {
  "kubernetes": clusterFlags["kubernetes"]!,
  "kubeconfig": clusterFlags["kubeconfig"]!,
  "driver-name": serveFlags["driver-name"]!,
};
