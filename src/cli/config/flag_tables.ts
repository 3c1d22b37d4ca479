import type { FlagTable } from "../flags.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../../telemetry/log.ts";
import { defaultSettleMs } from "../../volume/rules/absence.ts";
import { defaultFenceSettleMs } from "../../volume/rules/fence.ts";
import { deviceLayers } from "../../volume/model/device_layer.ts";
import { maxNodeIdBytes } from "../../volume/model/ids.ts";
import { clusterFlags } from "./cluster.ts";
import { legacyFlags } from "./legacy_flags.ts";

/** Flags of every command that talks to the router as a controller does. */
export const routerFlags: FlagTable = {
  "config": {
    form: "text",
    env: ["RDS_CONFIG"],
    help:
      "File (YAML) that names several routers, in the place of the flags that tell of the only one: see docs/reference/config.md.",
  },
  "rds-address": { form: "text", env: ["RDS_ADDRESS"], help: "Address of the router's SSH service." },
  "rds-port": {
    form: "integer",
    least: 1,
    most: 65535,
    fallback: "22",
    env: ["RDS_PORT"],
    help: "Port of the router's SSH service.",
  },
  "rds-user": {
    form: "text",
    fallback: "rds-csi",
    env: ["RDS_USER"],
    help: "The router's user; policies ssh, read and write suffice.",
  },
  "rds-key": {
    form: "text",
    aliases: ["rds-key-file"],
    env: ["RDS_KEY"],
    help: "File with the user's private key (ed25519 or RSA).",
  },
  "rds-password-file": {
    form: "text",
    env: ["RDS_PASSWORD_FILE"],
    help: "File with the user's password, where there is no key.",
  },
  "rds-host-key": {
    form: "list",
    env: ["RDS_HOST_KEY"],
    hasCommas: true,
    help:
      "The router's host key: an OpenSSH public key, a known_hosts line, or the absolute path of a file of them.",
  },
  "rds-insecure-skip-verify": {
    form: "switch",
    help: "Accept any host key. For tests only: whoever answers gets the password.",
  },
  "backend": {
    form: "text",
    fallback: "default",
    help:
      "Name of the router in StorageClasses, volume contexts and metrics. With --config: which of its routers a command is for.",
  },
  "base-path": {
    form: "list",
    fallback: "/storage-pool/metal-csi",
    aliases: ["rds-volume-base-path"],
    env: ["RDS_BASE_PATH"],
    help: "Folder on the router that volumes may lie in; the first is where they go by default.",
  },
  "nvme-address": {
    form: "text",
    env: ["RDS_NVME_ADDRESS"],
    help:
      "Address that nodes reach the volumes at, or up to 8 separated by commas; default is --rds-address.",
  },
  "nvme-port": {
    form: "integer",
    least: 1,
    most: 65535,
    fallback: "4420",
    help: "Port that volumes are exported on.",
  },
  "nqn-prefix": {
    form: "text",
    fallback: "nqn.2000-02.com.mikrotik",
    help: "What the NQNs of this driver's exports begin with.",
  },
  "cluster-id": {
    form: "text",
    env: ["RDS_CLUSTER_ID"],
    help:
      "What tells this cluster's volumes from another's on the same router. Never change it while there are volumes. " +
      "hash:XXXXXXXX is the mark that a lost cluster's files carry. rds-csi serve takes the uid of the namespace kube-system where there is a cluster to ask.",
  },
  "known-node": {
    form: "list",
    help: "Id of a node that volumes may be published to, where there is no cluster to ask.",
  },
  "settle-time": {
    form: "duration",
    most: 3_600_000,
    fallback: `${defaultSettleMs / 1000}s`,
    help: "How long after its boot a router may still bring disks back.",
  },
  "unexport-grace": {
    form: "duration",
    most: 300_000,
    fallback: "10s",
    help: "How long an export may linger after its withdrawal.",
  },
  "allow-unfenced": {
    form: "switch",
    help:
      "Publish on RouterOS before 7.21 too, where a node that is thought to be dead can go on writing. Data can be lost.",
  },
  "overcommit": {
    form: "number",
    least: 0.1,
    most: 100,
    fallback: "1",
    help: "How much of a pool may be promised; 1 is exactly its size.",
  },
  "router-profile": {
    form: "text",
    help:
      "File that `rds-csi doctor --probe` wrote about this router: how long to wait for it follows from it, " +
      "where no flag says so. A node takes several, with commas: its --fence-settle-time follows from them.",
  },
};

/** Flags of a command about one volume, which the cluster may know by another name. */
export const volumeFlags: FlagTable = { ...routerFlags, kubeconfig: clusterFlags["kubeconfig"]! };

/** What slot and epoch add to the prefix of an NQN at most: `:<32 characters>:<9 digits>-<8 digits>`. */
export const maxNqnTailBytes = 52;

/** Flags of a controller's audits. */
const auditFlags: FlagTable = {
  "audit-interval": {
    form: "duration",
    most: 604_800_000,
    fallback: "1h",
    help:
      "How often a controller, of several in a cluster the one that leads, looks for what lies on the router without an owner; 0s for never.",
  },
  "orphan-delete-older-than": {
    form: "duration",
    least: 3_600_000,
    help:
      "Delete what has had no owner for so long, as `rds-csi audit --delete-older-than` does; at least 1h. Without it nothing is deleted.",
  },
};

/** Flags of every command on a node: what `rds-csi serve` is told about it, word for word. */
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
    help:
      "Folder that remembers what is staged on this node; it must survive reboots. One process has it at a time.",
  },
  "topology": {
    form: "list",
    help:
      "Segment of the topology that this node is in, as key=value: it reaches the volumes of those routers of --config that " +
      "say the same. Every key of those has to be given; without them nothing is told of places.",
  },
  "max-volumes-per-node": {
    form: "integer",
    least: 0,
    most: 4096,
    fallback: "0",
    help: "Most volumes on this node; 0 leaves it open.",
  },
  "fence-interval": {
    form: "duration",
    least: 1_000,
    most: 600_000,
    fallback: "30s",
    help: "How often a node looks whether the router has taken a volume away from it.",
  },
  "fence-settle-time": {
    form: "duration",
    least: 3_000,
    most: 3_600_000,
    fallback: `${defaultFenceSettleMs / 1000}s`,
    help:
      "A volume that is to be unstaged, and that the router does not offer, is given up after 10 times this long; at least 3 " +
      "times --fence-interval.",
  },
  "fstrim-interval": {
    form: "duration",
    most: 1_728_000_000,
    fallback: "0s",
    help:
      "How often a node has the file systems of its healthy, writable volumes tell the router what they do not use, one " +
      "volume at a time; at least 1m, or 0s for never.",
  },
  "device-layer": {
    form: "text",
    choices: deviceLayers,
    fallback: "none",
    help:
      "Whether volumes get a device-mapper map that lets writers wait while the router reboots, where their StorageClass " +
      "does not say so by deviceLayer: auto where the kernel has dm-multipath, multipath always, none never.",
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
  "controller": { form: "switch", help: "Serve the controller; in the place of --mode." },
  "node": { form: "switch", help: "Serve the node; in the place of --mode." },
  "endpoint": {
    form: "text",
    fallback: "unix:///csi/csi.sock",
    env: ["CSI_ENDPOINT"],
    help: "Where to serve gRPC: unix:///path, unix:/path, a bare path, or tcp://127.0.0.1:port for tests.",
  },
  "metrics-address": {
    form: "text",
    fallback: ":9809",
    help:
      "Where to serve the status page at /, /status.json, /metrics, /healthz and /readyz over HTTP: host:port, [IPv6]:port, " +
      "or :port for every IPv4 address; empty for nowhere.",
  },
  "status-address": {
    form: "text",
    fallback: "",
    help:
      "Where to serve the status page to whoever reaches it, in the form of --metrics-address. By default a controller " +
      "serves it there, and so does a node, but only to its own machine.",
  },
  "driver-name": { form: "text", fallback: "rds.csi.srvlab.io", help: "Name of the CSI driver." },
  "register": {
    form: "switch",
    help: "Register the driver with this node's kubelet itself, so that no node-driver-registrar is needed.",
  },
  "kubelet-path": {
    form: "text",
    fallback: "/var/lib/kubelet",
    help: "The kubelet's folder, for --register: its plugins_registry is where drivers are registered.",
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
      "What to log, and everything above it. The signal SIGUSR1 has the next lower level logged too, SIGUSR2 sets it " +
      "back. In a controller's pod: kubectl exec POD -c driver -- sh -c 'kill -USR1 1'. In a node's pod process 1 is the " +
      "host's: take the number of rds-csi there.",
  },
  "log-format": {
    form: "text",
    choices: LOG_FORMATS,
    fallback: "json",
    help: "How a line of the log is written: one JSON object, or text for people, which is logfmt.",
  },
  ...routerFlags,
  ...clusterFlags,
  ...auditFlags,
  ...nodeFlags,
  "volume-metrics": {
    form: "switch",
    help:
      "Show what the kernel counts of each staged volume's device: bytes, reads, writes and time, with the volume's id as a " +
      "label, so that each volume is a series of its own for Prometheus. Needs Linux 5.15.",
  },
  ...legacyFlags,
};
