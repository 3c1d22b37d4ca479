import { gapsPerSettleTime } from "./volume/fence.ts";
import { clusterHash } from "./volume/ids.ts";
import { VolumeError } from "./volume/errors.ts";
import { maxCommentBytes } from "./volume/record.ts";
import { assertNodeId } from "./volume/ids.ts";
import { parseNvmeAddresses } from "./volume/nvme_addresses.ts";
import { assertBasePath } from "./volume/parameters.ts";
import { type ClusterConfig, readCluster } from "./config/cluster.ts";
import { maxNqnTailBytes, routerFlags, serveFlags } from "./config/flag_tables.ts";
import type { AuditLoopSettings } from "./controller/audit_loop.ts";
import type { ControllerSettings } from "./controller/world.ts";
import { type FlagValues, readFlags } from "./flags.ts";
import type { RouterAnswers } from "./router_profile/answers.ts";
import { narrowLimits } from "./router_profile/limits.ts";
import { parseProfile, type RouterProfile } from "./router_profile/profile.ts";
import { waitsFor } from "./router_profile/waits.ts";
import { type ListenAddress, parseListenAddress } from "./telemetry/listen_address.ts";
import { type LogLevel } from "./telemetry/log.ts";

/** Reads one environment variable; undefined when it is not set or not allowed. */
export type Environment = (name: string) => string | undefined;

/** Reads a file that a flag names; throws when it cannot be read. */
export type TextReader = (path: string) => string;

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
  /** Of which `cluster` is empty where no flag says which one it is: it has to be asked then, see {@linkcode ServeConfig}. */
  readonly settings: ControllerSettings;
  readonly knownNodes: readonly string[];
  /** What is known about the router beyond what every one does. */
  readonly profile: RouterProfile | undefined;
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
  /** How often it looks for fenced volumes, in milliseconds. */
  readonly fenceIntervalMs: number;
  /** How long a volume has to be missed by then, in milliseconds. */
  readonly fenceSettleMs: number;
}

/** How this node's kubelet is told of the driver. */
export interface RegistrationConfig {
  /** The kubelet's folder, without a slash at its end. */
  readonly kubeletPath: string;
  /** The CSI socket, as the kubelet sees it. */
  readonly socketPath: string;
}

/** Everything that `rds-csi serve` is told. */
export interface ServeConfig {
  /** What was told and has no effect, as sentences without a full stop. */
  readonly warnings: readonly string[];
  readonly endpoint: string;
  readonly driverName: string;
  /** Where metrics are served; undefined for nowhere. */
  readonly metricsAddress: ListenAddress | undefined;
  readonly logLevel: LogLevel;
  readonly controller: ControllerConfig | undefined;
  /** The controller's cluster; undefined when there is none. */
  readonly cluster: ClusterConfig | undefined;
  readonly audit: AuditLoopSettings;
  readonly node: NodeConfig | undefined;
  /** Undefined where somebody else, such as node-driver-registrar, tells the kubelet. */
  readonly registration: RegistrationConfig | undefined;
}

/**
 * Reads the command line of `rds-csi serve`.
 *
 * @throws {FlagError} naming everything that is wrong, at once
 */
export function readServeConfig(
  args: readonly string[],
  env: Environment,
  readText: TextReader = readNothing,
): ServeConfig {
  const flags = readFlags(serveFlags, args, env);
  const mode = readMode(flags);
  const cluster = mode === "node" ? undefined : readCluster(flags, env);
  if (flags.switch("leader-election") && mode !== "controller") {
    // A node service serves its node always.
    flags.problem("leader-election", "true", "left out but with --mode controller");
  }
  const own = [flags.text("node-id")].filter((id) => id !== "");
  const config: ServeConfig = {
    warnings: flags.warnings(),
    endpoint: flags.text("endpoint"),
    driverName: readDriverName(flags),
    metricsAddress: readMetricsAddress(flags),
    logLevel: flags.text("log-level") as LogLevel,
    controller: mode === "node" ? undefined : readController(flags, own, readText, cluster !== undefined),
    cluster,
    audit: readAudit(flags),
    node: mode === "controller" ? undefined : readNode(flags),
    registration: flags.switch("register") ? readRegistration(flags, mode) : undefined,
  };
  flags.assertNoProblems();
  return config;
}

/** The earlier driver has a switch for each half. */
function readMode(flags: FlagValues): string {
  const mode = flags.text("mode");
  const halves = ["controller", "node"].filter((name) => flags.switch(name));
  const bySwitch = halves.length === 1 ? halves[0]! : "all";
  if (halves.length === 0) return mode;
  if (flags.isGiven("mode") && mode !== bySwitch) {
    flags.problem(
      "mode",
      mode,
      `${bySwitch} beside --${halves.join(" and --")}: one of the two ways suffices`,
    );
  }
  return bySwitch;
}

/**
 * Reads the command line of a command that talks to the router as the controller does.
 *
 * @throws {FlagError} naming everything that is wrong, at once
 */
export function readControllerConfig(
  args: readonly string[],
  env: Environment,
  readText: TextReader = readNothing,
): ControllerConfig {
  const flags = readFlags(routerFlags, args, env);
  const config = readController(flags, [], readText);
  flags.assertNoProblems();
  return config;
}

/** What a controller is told, in the flags of a command that has those of `routerFlags`. */
export function readController(
  flags: FlagValues,
  ownNodes: readonly string[],
  readText: TextReader,
  hasCluster = false,
): ControllerConfig {
  const router = readRouter(flags);
  const basePaths = readBasePaths(flags);
  const knownNodes = [...new Set([...flags.list("known-node"), ...ownNodes])];
  for (const node of flags.list("known-node")) check(flags, "known-node", node, () => assertNodeId(node));
  const clusterId = hasCluster
    ? flags.text("cluster-id")
    : flags.required("cluster-id", "for the controller, where there is no cluster to ask");
  const nqnPrefix = readNqnPrefix(flags);
  const profile = readProfile(flags, nqnPrefix, readText);
  const waits = waitsFor(profile?.answers ?? {});
  return {
    router,
    knownNodes,
    profile,
    settings: {
      cluster: clusterId === "" ? "" : clusterHash(clusterId),
      backend: flags.text("backend"),
      basePaths,
      nvmeAddress: readNvmeAddress(flags, router),
      nvmePort: flags.number("nvme-port"),
      nqnPrefix,
      routerAddress: router.address,
      routerPort: router.port,
      settleMs: readWait(flags, "settle-time", waits.settleMs),
      unexportGraceMs: readWait(flags, "unexport-grace", waits.unexportGraceMs),
      overcommit: flags.number("overcommit"),
      allowUnfenced: flags.switch("allow-unfenced"),
      ...readBehaviour(profile?.answers ?? {}),
    },
  };
}

/** How often a controller looks for what has no owner, and what becomes of it. */
function readAudit(flags: FlagValues): AuditLoopSettings {
  const given = flags.isGiven("orphan-delete-older-than");
  return {
    intervalMs: flags.durationMs("audit-interval"),
    deleteOlderThanMs: given ? flags.durationMs("orphan-delete-older-than") : undefined,
  };
}

/** What was not asked of a router is assumed to be as on Linux, but for the one answer on which data depends. */
function readBehaviour(answers: Partial<RouterAnswers>) {
  const { grow, subvolumeNames, subvolumeParent, copyReturns, adopt, allowHost, maxComment = Infinity } =
    answers;
  return {
    maxCommentBytes: Math.min(maxCommentBytes, maxComment),
    growth: grow ?? "live",
    adopts: adopt !== "refused",
    subvolumeNames: subvolumeNames ?? "nested",
    subvolumeParent: subvolumeParent ?? "free",
    copyReturns,
    allowHost,
  };
}

/** Stands where no flag names a file. */
export function readNothing(path: string): string {
  throw new TypeError(`there is nothing to read it with: ${path}`);
}

/** What the router is known to do, and can be worked with. */
function readProfile(
  flags: FlagValues,
  nqnPrefix: string,
  readText: TextReader,
): RouterProfile | undefined {
  const path = flags.text("router-profile");
  if (path === "") return undefined;
  try {
    const profile = parseProfile(readText(path));
    for (const reason of narrowLimits(profile.answers, nqnPrefix.length + maxNqnTailBytes)) {
      flags.problem("router-profile", path, `the profile of a router with room for volumes (${reason})`);
    }
    return profile;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    flags.problem("router-profile", path, `a file that \`rds-csi doctor --probe\` wrote (${reason})`);
    return undefined;
  }
}

/** A flag that is given wins, then what the router's profile leads to. */
function readWait(flags: FlagValues, name: string, fromProfileMs: number | undefined): number {
  if (flags.isGiven(name) || fromProfileMs === undefined) return flags.durationMs(name);
  const { most = Infinity } = routerFlags[name]!;
  if (fromProfileMs <= most) return fromProfileMs;
  const allowed = `a profile by which --${name} is at most ${most / 1000}s (by this one it is ${
    fromProfileMs / 1000
  }s); the flag itself may say otherwise`;
  flags.problem("router-profile", flags.text("router-profile"), allowed);
  return most;
}

/** How to reach the router, and how to know it. */
export function readRouter(flags: FlagValues): RouterConfig {
  const router = readRouterLoosely(flags);
  if (router.keyFile === undefined && router.passwordFile === undefined) {
    flags.required("rds-key", "for the controller, unless --rds-password-file is given");
  }
  if (router.hostKeys.length === 0 && !router.insecureSkipVerify) {
    flags.required("rds-host-key", "for the controller: what `ssh-keyscan` prints for the router");
  }
  return router;
}

/** How to reach the router; credentials and host keys may be missing. */
export function readRouterLoosely(flags: FlagValues): RouterConfig {
  const router = {
    address: flags.required("rds-address", "for the controller"),
    port: flags.number("rds-port"),
    user: flags.text("rds-user"),
    keyFile: flags.text("rds-key") || undefined,
    passwordFile: flags.text("rds-password-file") || undefined,
    hostKeys: flags.list("rds-host-key"),
    insecureSkipVerify: flags.switch("rds-insecure-skip-verify"),
  };
  checkSecretFile(flags, "rds-key", router.keyFile);
  checkSecretFile(flags, "rds-password-file", router.passwordFile);
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

/** The folders on the router that volumes may lie in. */
export function readBasePaths(flags: FlagValues): readonly string[] {
  const basePaths = flags.list("base-path");
  for (const path of basePaths) {
    check(flags, "base-path", path, () => assertBasePath("base-path", path));
  }
  return basePaths;
}

/** Where nodes reach volumes. What a node would refuse at every publish is refused before there is a volume. */
export function readNvmeAddress(flags: FlagValues, router: RouterConfig): string {
  const given = flags.text("nvme-address");
  const address = given || router.address;
  const name = given === "" ? "rds-address" : "nvme-address";
  if (address !== "") check(flags, name, address, () => parseNvmeAddresses("nvmeAddress", address));
  return address;
}

function readMetricsAddress(flags: FlagValues): ListenAddress | undefined {
  const text = flags.text("metrics-address");
  const address = parseListenAddress(text);
  if (address === undefined && text !== "") {
    flags.problem("metrics-address", text, "host:port, [IPv6]:port, :port, or nothing");
  }
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

/** What a node is told, in the flags of `rds-csi serve`. */
export function readNode(flags: FlagValues): NodeConfig {
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
    ...readFencing(flags),
  };
}

/** A kubelet that is told a socket which it cannot see would not find the driver, and say so to nobody who listens. */
function readRegistration(flags: FlagValues, mode: string): RegistrationConfig {
  const given = flags.text("kubelet-path");
  const kubeletPath = given.replace(/\/+$/, "");
  if (!isPlainPath(kubeletPath)) flags.problem("kubelet-path", given, "the absolute path of a folder");
  const named = flags.text("kubelet-endpoint");
  const endpoint = flags.text("endpoint");
  const socketPath = named || endpoint.replace(/^unix:(?:\/\/)?(?=\/)/, "");
  if (mode === "controller") flags.problem("register", "true", "true only where --mode serves a node");
  if (named !== "" && !isPlainPath(named)) {
    flags.problem("kubelet-endpoint", named, "the absolute path of a socket");
  }
  if (named === "" && !socketPath.startsWith(`${kubeletPath}/`)) {
    const allowed =
      `with --register a unix socket below --kubelet-path ${kubeletPath}, which the kubelet sees at ` +
      "the same path; or say by --kubelet-endpoint where it sees the socket";
    flags.problem("endpoint", endpoint, allowed);
  }
  return { kubeletPath, socketPath };
}

function isPlainPath(path: string): boolean {
  return path.startsWith("/") && !path.endsWith("/") &&
    path.split("/").every((part) => part !== ".." && part !== ".");
}

/** Reads lack a volume for long only if there are several of them. */
function readFencing(flags: FlagValues): Pick<NodeConfig, "fenceIntervalMs" | "fenceSettleMs"> {
  const fenceIntervalMs = flags.durationMs("fence-interval");
  const fenceSettleMs = flags.durationMs("fence-settle-time");
  if (fenceSettleMs < gapsPerSettleTime * fenceIntervalMs) {
    flags.problem(
      "fence-settle-time",
      flags.text("fence-settle-time"),
      `at least ${gapsPerSettleTime} times --fence-interval, which is ${flags.text("fence-interval")}`,
    );
  }
  return { fenceIntervalMs, fenceSettleMs };
}

/** What the NQNs of this driver's exports begin with. */
export function readNqnPrefix(flags: FlagValues): string {
  const prefix = flags.text("nqn-prefix");
  // An NQN has at most 223 bytes.
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
