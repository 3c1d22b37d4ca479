import { type ConfigFiles, noFiles, readBackendOf, readRouters, type VolumeOfBackend } from "./backends.ts";
import { type ClusterConfig, readCluster } from "./cluster.ts";
import {
  type DirectoryControllerConfig,
  directoryDriverName,
  type DriverKind,
  readDirectoryController,
} from "./directories.ts";
import { serveFlags, volumeFlags } from "./flag_tables.ts";
import { isSegment, type RoutersParser } from "./router_keys.ts";
import {
  check,
  type ControllerConfig,
  readNothing,
  readNqnPrefix,
  type TextReader,
} from "./router_settings.ts";
import type { AuditLoopSettings } from "../../controller/audit/audit_loop.ts";
import { FlagError, type FlagValues, readFlags } from "../flags.ts";
import { type ListenAddress, parseListenAddress } from "../../telemetry/http.ts";
import type { LogFormat, LogLevel } from "../../telemetry/log.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import { gapsPerSettleTime } from "../../volume/rules/fence.ts";
import { assertNodeId } from "../../volume/model/ids/ids.ts";
import { assertHandle } from "../../volume/model/ids/handles.ts";

/** Reads one environment variable; undefined when it is not set or not allowed. */
export type Environment = (name: string) => string | undefined;

/** The configuration of the node service. */
export interface NodeConfig {
  readonly nodeId: string;
  readonly connector: "nvme-tcp" | "loop";
  /** The simulator's folder, for the connector loop. */
  readonly loopBacking: string;
  readonly stateDirectory: string;
  /** 0 leaves it to the orchestrator. */
  readonly maxVolumesPerNode: number;
  readonly nqnPrefix: string;
  /** The node's topology segments; empty where none are configured. */
  readonly topology: Readonly<Record<string, string>>;
  /** How often it checks for fenced volumes, in milliseconds. */
  readonly fenceIntervalMs: number;
  /** How long a volume has to be missing before it counts as fenced, in milliseconds. */
  readonly fenceSettleMs: number;
  /** How often it trims file systems, in milliseconds; 0 for never. */
  readonly fstrimIntervalMs: number;
  /** The device layer for volumes whose StorageClass does not choose one. */
  readonly deviceLayer: DeviceLayer;
}

/** How the driver registers with this node's kubelet. */
export interface RegistrationConfig {
  /** The kubelet's folder, without a slash at its end. */
  readonly kubeletPath: string;
  /** The CSI socket, as the kubelet sees it. */
  readonly socketPath: string;
}

/** The configuration of `rds-csi serve`. */
export interface ServeConfig {
  /** Settings that have no effect, as sentences without a full stop. */
  readonly warnings: readonly string[];
  readonly endpoint: string;
  readonly kind: DriverKind;
  readonly driverName: string;
  /** Where metrics are served; undefined for nowhere. */
  readonly metricsAddress: ListenAddress | undefined;
  /**
   * Where everybody may read the status page; undefined for the address of the metrics, as {@linkcode ServeConfig.node}
   * says.
   */
  readonly statusAddress: ListenAddress | undefined;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Whether a node's metrics include the kernel's counters of each volume's device. */
  readonly volumeMetrics: boolean;
  /** The routers of `--config`, or that of the flags; empty for a node alone. */
  readonly routers: readonly ControllerConfig[];
  /** The controller of directories, instead of them. */
  readonly directories: DirectoryControllerConfig | undefined;
  /** The controller's cluster; undefined when there is none. */
  readonly cluster: ClusterConfig | undefined;
  readonly audit: AuditLoopSettings;
  /** How often a controller reads the health of arrays and drives, in milliseconds; 0 never. */
  readonly healthIntervalMs: number;
  readonly node: NodeConfig | undefined;
  /** Undefined where the driver does not register itself. */
  readonly registration: RegistrationConfig | undefined;
}

/**
 * Reads the command line of `rds-csi serve`.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readServeConfig(
  args: readonly string[],
  env: Environment,
  readText: TextReader = readNothing,
  parseRouters?: RoutersParser,
): ServeConfig {
  const flags = readFlags(serveFlags, args, env);
  const mode = readMode(flags);
  const kind = flags.text("kind") as DriverKind;
  // What is required depends on them: with a wrong one most other problems would be none.
  if (!["mode", "kind"].every((name) => serveFlags[name]!.choices!.includes(flags.text(name)))) {
    flags.assertNoProblems();
  }
  if (flags.text("config") !== "" && flags.isGiven("backend")) {
    flags.addProblems(["--backend has to be omitted because --config names each router"]);
  }
  const cluster = mode === "node" ? undefined : readCluster(flags, env);
  if (flags.switch("leader-election") && mode !== "controller") {
    // A node service always serves its node.
    flags.addProblems(["--leader-election goes with --mode controller"]);
  }
  const own = [flags.text("node-id")].filter((id) => id !== "");
  const adapters = { readText, parseRouters, ownNodes: own, hasCluster: cluster !== undefined };
  const isBlock = kind === "block";
  const config: ServeConfig = {
    warnings: [
      ...flags.warnings(),
      ...(mode === "node" ? ["config", "router-profile"] : []).filter((flag) => flags.text(flag) !== "")
        .map((flag) => `--${flag} has no effect because a node connects to no router`),
    ],
    endpoint: flags.text("endpoint"),
    kind,
    driverName: readDriverName(flags, kind),
    metricsAddress: readListenAddress(flags, "metrics-address"),
    statusAddress: readListenAddress(flags, "status-address"),
    logLevel: flags.text("log-level") as LogLevel,
    logFormat: flags.text("log-format") as LogFormat,
    volumeMetrics: flags.switch("volume-metrics"),
    routers: mode === "node" || !isBlock ? [] : readRouters(flags, adapters),
    directories: mode === "node" || isBlock
      ? undefined
      : readDirectoryController(flags, cluster !== undefined),
    cluster,
    audit: readAudit(flags),
    healthIntervalMs: readRareInterval(flags, "health-interval"),
    node: mode === "controller" ? undefined : readNode(flags, kind),
    registration: flags.switch("register") ? readRegistration(flags, mode) : undefined,
  };
  flags.assertNoProblems();
  return config;
}

/** The legacy driver has a switch for each half. */
function readMode(flags: FlagValues): string {
  const mode = flags.text("mode");
  const halves = ["controller", "node"].filter((name) => flags.switch(name));
  const bySwitch = halves.length === 1 ? halves[0]! : "all";
  if (halves.length === 0) return mode;
  if (flags.isGiven("mode") && mode !== bySwitch) {
    flags.problem(
      "mode",
      mode,
      `${bySwitch} conflicts with --${halves.join(" and --")}: use one of the two ways`,
    );
  }
  return bySwitch;
}

/**
 * Reads the command line of a command on one volume that acts like a controller: the volume, then flags.
 *
 * @throws {FlagError} naming all problems at once
 * @throws {VolumeError} invalid when the id has another form
 */
export function readVolumeCommand(
  args: readonly string[],
  env: Environment,
  files: ConfigFiles = noFiles,
): VolumeOfBackend {
  const { handle, rest } = takeVolume(args);
  return readBackendOf(handle, readFlags(volumeFlags, rest, env), files);
}

/**
 * Takes the volume from the front of a command line.
 *
 * @param otherwise what the command takes in its place, as the end of a sentence
 * @throws {FlagError} when it is missing
 * @throws {VolumeError} invalid when it is no id
 */
export function takeVolume(
  args: readonly string[],
  otherwise = "",
): { readonly handle: string; readonly rest: string[] } {
  const [handle, ...rest] = args;
  if (handle === undefined || handle.startsWith("-")) {
    throw new FlagError([`VOLUME is required${otherwise}`]);
  }
  assertHandle(handle);
  return { handle, rest };
}

/** How often a controller audits, and what it deletes. */
function readAudit(flags: FlagValues): AuditLoopSettings {
  const given = flags.isGiven("orphan-delete-older-than");
  return {
    intervalMs: flags.durationMs("audit-interval"),
    deleteOlderThanMs: given ? flags.durationMs("orphan-delete-older-than") : undefined,
  };
}

function readListenAddress(
  flags: FlagValues,
  flag: "metrics-address" | "status-address",
): ListenAddress | undefined {
  const text = flags.text(flag);
  const address = parseListenAddress(text);
  if (address === undefined && text !== "") {
    flags.problem(flag, text, "host:port, [IPv6]:port, :port, or nothing");
  }
  return address;
}

/** CSI specification, GetPluginInfoResponse.name. */
function readDriverName(flags: FlagValues, kind: DriverKind): string {
  // Two drivers of one name would answer for each other's volumes.
  const name = kind === "directory" && !flags.isGiven("driver-name")
    ? directoryDriverName
    : flags.text("driver-name");
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

/** Reads the configuration of a node from the flags of `rds-csi serve`. */
export function readNode(flags: FlagValues, kind: DriverKind = "block"): NodeConfig {
  const nodeId = flags.required("node-id", "for the node");
  if (nodeId !== "") check(flags, "node-id", nodeId, () => assertNodeId(nodeId));
  const connector = flags.text("connector") as NodeConfig["connector"];
  if (connector === "loop") flags.required("loop-backing", "for --connector loop");
  return {
    nodeId,
    connector,
    loopBacking: flags.text("loop-backing"),
    stateDirectory: readStateDirectory(flags, kind),
    maxVolumesPerNode: flags.number("max-volumes-per-node"),
    nqnPrefix: readNqnPrefix(flags),
    topology: readTopology(flags),
    deviceLayer: flags.text("device-layer") as DeviceLayer,
    ...readFencing(flags),
    fstrimIntervalMs: readRareInterval(flags, "fstrim-interval"),
  };
}

/** Only one process may use a folder. */
function readStateDirectory(flags: FlagValues, kind: DriverKind): string {
  const given = flags.text("state-dir");
  if (kind === "block" || flags.isGiven("state-dir")) return given;
  return `/var/lib/kubelet/plugins/${directoryDriverName}/state`;
}

function readTopology(flags: FlagValues): Readonly<Record<string, string>> {
  const topology: Record<string, string> = {};
  for (const given of flags.list("topology")) {
    const at = given.indexOf("=");
    const [key, value] = [given.slice(0, Math.max(0, at)), given.slice(at + 1)];
    if (isSegment(key, value) && !Object.hasOwn(topology, key)) topology[key] = value;
    else flags.problem("topology", given, "key=value in the form of Kubernetes' labels, each key once");
  }
  return topology;
}

/** A kubelet that gets the path of a socket that it cannot see does not find the driver, and reports that nowhere. */
function readRegistration(flags: FlagValues, mode: string): RegistrationConfig {
  const given = flags.text("kubelet-path");
  const kubeletPath = given.replace(/\/+$/, "");
  if (!isPlainPath(kubeletPath)) flags.problem("kubelet-path", given, "the absolute path of a folder");
  const named = flags.text("kubelet-endpoint");
  const endpoint = flags.text("endpoint");
  const socketPath = named || endpoint.replace(/^unix:(?:\/\/)?(?=\/)/, "");
  if (mode === "controller") flags.addProblems(["--register goes with a --mode that serves a node"]);
  if (named !== "" && !isPlainPath(named)) {
    flags.problem("kubelet-endpoint", named, "the absolute path of a socket");
  }
  if (named === "" && !socketPath.startsWith(`${kubeletPath}/`)) {
    const allowed =
      `with --register a unix socket below --kubelet-path ${kubeletPath}, which the kubelet sees at ` +
      "the same path; or set --kubelet-endpoint to the path where the kubelet sees the socket";
    flags.problem("endpoint", endpoint, allowed);
  }
  return { kubeletPath, socketPath };
}

function isPlainPath(path: string): boolean {
  return path.startsWith("/") && !path.endsWith("/") &&
    path.split("/").every((part) => part !== ".." && part !== ".");
}

/** Trimming or reading drives all the time would leave the routers no rest. */
function readRareInterval(flags: FlagValues, name: "fstrim-interval" | "health-interval"): number {
  const intervalMs = flags.durationMs(name);
  if (intervalMs > 0 && intervalMs < 60_000) flags.problem(name, flags.text(name), "0s, or at least 1m");
  return intervalMs;
}

/** Reads can show that a volume is missing for long only if there are several of them. */
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
