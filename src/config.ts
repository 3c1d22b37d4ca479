import { defaultSettleMs } from "./volume/absence.ts";
import { clusterHash, maxNodeIdBytes } from "./volume/ids.ts";
import { VolumeError } from "./volume/errors.ts";
import { assertNodeId } from "./volume/ids.ts";
import { assertBasePath, assertNvmeAddress } from "./volume/parameters.ts";
import type { ControllerSettings } from "./controller/world.ts";
import { type FlagTable, type FlagValues, readFlags } from "./flags.ts";
import { LOG_LEVELS, type LogLevel } from "./telemetry/log.ts";

/** Reads one environment variable; undefined when it is not set or not allowed. */
export type Environment = (name: string) => string | undefined;

/** Flags of every command that talks to the router as a controller does. */
export const routerFlags: FlagTable = {
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
  "rds-key": { form: "text", env: ["RDS_KEY"], help: "File with the user's private key (ed25519 or RSA)." },
  "rds-password-file": {
    form: "text",
    env: ["RDS_PASSWORD_FILE"],
    help: "File with the user's password, where there is no key.",
  },
  "rds-host-key": {
    form: "list",
    env: ["RDS_HOST_KEY"],
    hasCommas: true,
    help: "The router's host key: an OpenSSH public key or a known_hosts line.",
  },
  "rds-insecure-skip-verify": {
    form: "switch",
    help: "Accept any host key. For tests only: whoever answers gets the password.",
  },
  "backend": {
    form: "text",
    fallback: "default",
    help: "Name of the router in StorageClasses and volume contexts.",
  },
  "base-path": {
    form: "list",
    fallback: "/storage-pool/metal-csi",
    env: ["RDS_BASE_PATH"],
    help: "Folder on the router that volumes may lie in; the first is where they go by default.",
  },
  "nvme-address": {
    form: "text",
    env: ["RDS_NVME_ADDRESS"],
    help: "Address that nodes reach the volumes at; default is --rds-address.",
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
      "What tells this cluster's volumes from another's on the same router. Never change it while there are volumes.",
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
  "overcommit": {
    form: "number",
    least: 0.1,
    most: 100,
    fallback: "1",
    help: "How much of a pool may be promised; 1 is exactly its size.",
  },
};

/** Flags of `rds-csi serve`. */
export const serveFlags: FlagTable = {
  "mode": {
    form: "text",
    choices: ["controller", "node", "all"],
    fallback: "all",
    help: "Which services to serve.",
  },
  "endpoint": {
    form: "text",
    fallback: "unix:///csi/csi.sock",
    env: ["CSI_ENDPOINT"],
    help: "Where to serve gRPC: unix:///path, unix:/path, a bare path, or tcp://127.0.0.1:port for tests.",
  },
  "driver-name": { form: "text", fallback: "rds.csi.srvlab.io", help: "Name of the CSI driver." },
  "node-id": {
    form: "text",
    env: ["NODE_ID", "KUBE_NODE_NAME"],
    help: `Id of this node, at most ${maxNodeIdBytes} characters; usually the Kubernetes node's name.`,
  },
  "log-level": {
    form: "text",
    choices: LOG_LEVELS,
    fallback: "info",
    help: "What to log, and everything above it.",
  },
  ...routerFlags,
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
    help: "Folder that remembers what is staged on this node; it must survive reboots.",
  },
  "max-volumes-per-node": {
    form: "integer",
    least: 0,
    most: 4096,
    fallback: "0",
    help: "Most volumes on this node; 0 leaves it open.",
  },
};

/** How to log into the router. Secrets stay in their files until they are used. */
export interface RouterConfig {
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly keyFile: string | undefined;
  readonly passwordFile: string | undefined;
  readonly hostKeys: readonly string[];
  readonly insecureSkipVerify: boolean;
}

/** What the controller needs. */
export interface ControllerConfig {
  readonly router: RouterConfig;
  readonly settings: ControllerSettings;
  readonly knownNodes: readonly string[];
}

/** What the node service needs. */
export interface NodeConfig {
  readonly nodeId: string;
  readonly connector: "nvme-tcp" | "loop";
  /** The simulator's folder, for the connector loop. */
  readonly loopBacking: string;
  readonly stateDirectory: string;
  /** 0 leaves it open. */
  readonly maxVolumesPerNode: number;
  readonly nqnPrefix: string;
}

/** Everything that `rds-csi serve` is told. */
export interface ServeConfig {
  readonly endpoint: string;
  readonly driverName: string;
  readonly logLevel: LogLevel;
  readonly controller: ControllerConfig | undefined;
  readonly node: NodeConfig | undefined;
}

/**
 * Reads the command line of `rds-csi serve`.
 *
 * @throws {FlagError} naming everything that is wrong, at once
 */
export function readServeConfig(args: readonly string[], env: Environment): ServeConfig {
  const flags = readFlags(serveFlags, args, env);
  const mode = flags.text("mode");
  const config: ServeConfig = {
    endpoint: flags.text("endpoint"),
    driverName: readDriverName(flags),
    logLevel: flags.text("log-level") as LogLevel,
    controller: mode === "node"
      ? undefined
      : readController(flags, [flags.text("node-id")].filter((id) => id !== "")),
    node: mode === "controller" ? undefined : readNode(flags),
  };
  flags.assertNoProblems();
  return config;
}

/**
 * Reads the command line of a command that talks to the router as the controller does.
 *
 * @throws {FlagError} naming everything that is wrong, at once
 */
export function readControllerConfig(args: readonly string[], env: Environment): ControllerConfig {
  const flags = readFlags(routerFlags, args, env);
  const config = readController(flags, []);
  flags.assertNoProblems();
  return config;
}

function readController(flags: FlagValues, ownNodes: readonly string[]): ControllerConfig {
  const router = readRouter(flags);
  const basePaths = flags.list("base-path");
  for (const path of basePaths) {
    check(flags, "base-path", path, () => assertBasePath("base-path", path));
  }
  const knownNodes = [...new Set([...flags.list("known-node"), ...ownNodes])];
  for (const node of flags.list("known-node")) check(flags, "known-node", node, () => assertNodeId(node));
  const clusterId = flags.required("cluster-id", "for the controller");
  return {
    router,
    knownNodes,
    settings: {
      cluster: clusterHash(clusterId),
      backend: flags.text("backend"),
      basePaths,
      nvmeAddress: readNvmeAddress(flags, router),
      nvmePort: flags.number("nvme-port"),
      nqnPrefix: readNqnPrefix(flags),
      routerAddress: router.address,
      routerPort: router.port,
      settleMs: flags.durationMs("settle-time"),
      unexportGraceMs: flags.durationMs("unexport-grace"),
      overcommit: flags.number("overcommit"),
    },
  };
}

function readRouter(flags: FlagValues): RouterConfig {
  const router = {
    address: flags.required("rds-address", "for the controller"),
    port: flags.number("rds-port"),
    user: flags.text("rds-user"),
    keyFile: flags.text("rds-key") || undefined,
    passwordFile: flags.text("rds-password-file") || undefined,
    hostKeys: flags.list("rds-host-key"),
    insecureSkipVerify: flags.switch("rds-insecure-skip-verify"),
  };
  if (router.keyFile === undefined && router.passwordFile === undefined) {
    flags.required("rds-key", "for the controller, unless --rds-password-file is given");
  }
  checkSecretFile(flags, "rds-key", router.keyFile);
  checkSecretFile(flags, "rds-password-file", router.passwordFile);
  if (router.hostKeys.length === 0 && !router.insecureSkipVerify) {
    flags.required("rds-host-key", "for the controller: what `ssh-keyscan` prints for the router");
  }
  return router;
}

/** A key or a password where its file belongs is a common slip, and would end in an error message and in a log. */
function checkSecretFile(flags: FlagValues, name: string, path: string | undefined): void {
  if (path === undefined) return;
  const isPath = path.includes("/") && !/[\r\n]|-----/.test(path);
  if (isPath) return;
  flags.hiddenProblem(
    name,
    "the path of a file, with a slash in it: the file holds the secret, not the flag",
  );
}

/** What a node would refuse at every publish is refused before there is a volume. */
function readNvmeAddress(flags: FlagValues, router: RouterConfig): string {
  const given = flags.text("nvme-address");
  const address = given || router.address;
  const name = given === "" ? "rds-address" : "nvme-address";
  if (address !== "") check(flags, name, address, () => assertNvmeAddress("nvmeAddress", address));
  return address;
}

/** CSI specification, GetPluginInfoResponse.name. */
function readDriverName(flags: FlagValues): string {
  const name = flags.text("driver-name");
  const valid = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/.test(name);
  if (!valid) {
    flags.problem(
      "driver-name",
      name,
      "1 to 63 letters, digits, . and -, with a letter or digit at both ends",
    );
  }
  return name;
}

function readNode(flags: FlagValues): NodeConfig {
  const nodeId = flags.required("node-id", "for the node");
  if (nodeId !== "") check(flags, "node-id", nodeId, () => assertNodeId(nodeId));
  const connector = flags.text("connector") as NodeConfig["connector"];
  if (connector === "loop") flags.required("loop-backing", "for --connector loop");
  return {
    nodeId,
    connector,
    loopBacking: flags.text("loop-backing"),
    stateDirectory: flags.text("state-dir"),
    maxVolumesPerNode: flags.number("max-volumes-per-node"),
    nqnPrefix: readNqnPrefix(flags),
  };
}

function readNqnPrefix(flags: FlagValues): string {
  const prefix = flags.text("nqn-prefix");
  // An NQN has at most 223 bytes; slot and epoch take up to 52 of them.
  const valid = /^nqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(?::[a-z0-9.:-]+)?$/.test(prefix) &&
    prefix.length <= 160;
  if (!valid) flags.problem("nqn-prefix", prefix, "nqn.<year>-<month>.<reversed domain name>");
  return prefix;
}

function check(flags: FlagValues, name: string, value: string, assertion: () => void): void {
  try {
    assertion();
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    flags.problem(name, value, error.message);
  }
}
