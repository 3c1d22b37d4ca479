import type { Environment } from "../config/config.ts";
import {
  readBasePaths,
  readGrace,
  readNothing,
  readNqnPrefix,
  readNvmeAddress,
  readProfileFile,
  readRouter,
  readRouterLoosely,
  type RouterConfig,
  type TextReader,
} from "../config/router_settings.ts";
import { unexportGraceFor } from "../../router_profile/waits.ts";
import { nodeFlags, routerFlags, serveFlags } from "../config/flag_tables.ts";
import {
  type DriverKind,
  readDirectoryFolders,
  readNfsAddresses,
  refuseSeveralRouters,
} from "../config/directories.ts";
import { type ConfigFiles, noFiles, readChosenBackends } from "../config/backends.ts";
import { FlagError, type FlagTable, type FlagValues, readFlags } from "../flags.ts";
import type { RouterProfile } from "../../router_profile/profile.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { type NodeOptions, readNodeFlags } from "../node_flags.ts";
import type { CheckSettings } from "../../doctor/router/check.ts";
import type { NodeCheckOptions } from "../../doctor/node/check.ts";

/** The options of the node half of a check-up: those of its checks, and how to open the node. */
export type NodeCheckRequest = NodeCheckOptions & NodeOptions;

/** Flags of `rds-csi doctor`. */
export const doctorFlags: FlagTable = {
  "kind": serveFlags["kind"]!,
  "json": { form: "switch", help: "Print the findings as a JSON array." },
  "probe": {
    form: "switch",
    help: "Find out how this router behaves, on scratch volumes in --base-path, and print its profile.",
  },
  "before-reboot": {
    form: "switch",
    help: "With --probe: only leave one exported scratch disk for --after-reboot.",
  },
  "after-reboot": {
    form: "switch",
    help: "With --probe: first check what a reboot did to the disk that --before-reboot left.",
  },
  "node": {
    form: "switch",
    help: "Check this machine as a node too, if --rds-address is given and --node-id is not.",
  },
  "kubelet-dir": {
    form: "text",
    fallback: "/var/lib/kubelet",
    env: ["RDS_KUBELET_PATH"],
    help: "The kubelet's folder.",
  },
  "output": { form: "text", help: "With --probe: write the profile to this file instead of printing it." },
  ...nodeFlags,
  ...routerFlags,
};

/**
 * The options of `rds-csi doctor` for a router. What a controller requires may be missing here: the check-up reports
 * it.
 */
export interface DoctorOptions extends Pick<CheckSettings, "basePaths" | "cluster" | "overcommit" | "kind"> {
  readonly probe: boolean;
  /** Whether a probe runs before or after a reboot; "" for no reboot. */
  readonly reboot: "" | "before" | "after";
  /** "" prints the profile. */
  readonly output: string;
  readonly router: RouterConfig;
  /** Whether this machine is a node as well. */
  readonly isNode: boolean;
  readonly nvmeAddress: string;
  readonly nvmePort: number;
  readonly nqnPrefix: string;
  /** What is known about the router in particular. */
  readonly profile: RouterProfile | undefined;
}

/** What is to be checked, at least one of the two. */
export interface DoctorHalves {
  readonly json: boolean;
  readonly router: DoctorOptions | undefined;
  /** The routers of `--config`, instead of that one. */
  readonly named: readonly { readonly name: string; readonly options: DoctorOptions }[];
  readonly node: NodeCheckRequest | undefined;
}

/**
 * Reads the command line of `rds-csi doctor`. It checks the router when there is an address, and the machine when it is
 * said to be a node, or when there is nothing else to check.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readDoctorHalves(
  args: readonly string[],
  env: Environment,
  files: Pick<KernelFiles, "readText">,
  config: ConfigFiles = noFiles,
): DoctorHalves {
  const flags = readFlags(doctorFlags, args, env);
  const probe = flags.switch("probe");
  const hasFile = flags.text("config") !== "";
  const hasRouter = !hasFile && (flags.isGiven("rds-address") || probe);
  const checksNode = !probe && (isNode(flags) || !(hasRouter || hasFile));
  const problems: string[] = [];
  const named = hasFile ? collect(problems, () => readNamedRouters(flags, config)) ?? [] : [];
  const router = hasRouter
    ? collect(problems, () => readDoctorOptions(args, env, config.readText))
    : probe
    ? named[0]?.options
    : undefined;
  const node = checksNode ? collect(problems, () => readNodeCheckRequest(args, env, files)) : undefined;
  if (problems.length > 0) throw new FlagError([...new Set(problems)]);
  return { json: flags.switch("json"), router, named: probe ? [] : named, node };
}

/**
 * What a controller requires may be missing in flags. A file has to be complete, because a controller would not start
 * with it otherwise. A probe is for one router.
 */
function readNamedRouters(flags: FlagValues, config: ConfigFiles): DoctorHalves["named"] {
  if (flags.text("kind") === "directory") refuseSeveralRouters(flags);
  const backends = readChosenBackends(flags, { ...config, hasCluster: true });
  const probing = readProbing(flags);
  if (probing.probe) {
    const names = backends.map(({ settings }) => settings.backend).join(", ");
    if (backends.length > 1) {
      flags.addProblems([`--probe asks one router: choose it with --backend, one of ${names}`]);
    }
    const [first, ...others] = backends[0]?.settings.basePaths ?? [];
    if (others.length > 0) {
      flags.addProblems([
        `--probe makes scratch volumes in one folder, and ${backends[0]!.settings.backend} has several: ` +
        `give one of ${[first, ...others].join(", ")} as --base-path, ` +
        "and the router by flags instead of --config",
      ]);
    }
  }
  flags.assertNoProblems();
  return backends.map(({ router, settings, profile }) => ({
    name: settings.backend,
    options: {
      ...settings,
      ...probing,
      router,
      isNode: isNode(flags),
      profile,
      cluster: settings.cluster === "" ? undefined : settings.cluster,
    },
  }));
}

function collect<T>(problems: string[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

function readNodeCheckRequest(
  args: readonly string[],
  env: Environment,
  files: Pick<KernelFiles, "readText">,
): NodeCheckRequest {
  const { flags, node } = readNodeFlags(doctorFlags, args, env, files);
  const kubeletPath = flags.text("kubelet-dir");
  if (!kubeletPath.startsWith("/")) flags.problem("kubelet-dir", kubeletPath, "an absolute path");
  const nvmeAddress = readNvmeAddress(flags, flags.text("rds-address"));
  const kind = flags.text("kind") as DriverKind;
  const options = { ...node, kind, kubeletPath, nvmeAddress, nvmePort: flags.number("nvme-port") };
  flags.assertNoProblems();
  return options;
}

/**
 * Reads the options of `rds-csi doctor` for a router.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readDoctorOptions(
  args: readonly string[],
  env: Environment,
  readText: TextReader = readNothing,
): DoctorOptions {
  const flags = readFlags(doctorFlags, args, env);
  const router = flags.switch("probe") ? readRouter(flags) : readRouterLoosely(flags);
  const clusterId = flags.text("cluster-id");
  const nqnPrefix = readNqnPrefix(flags);
  const kind = flags.text("kind") as DriverKind;
  const options: DoctorOptions = {
    ...readProbing(flags),
    router,
    isNode: isNode(flags),
    kind,
    basePaths: kind === "directory" ? readDirectoryFolders(flags) : readBasePaths(flags),
    nvmeAddress: readNvmeAddress(flags, router.address),
    nvmePort: flags.number("nvme-port"),
    nqnPrefix,
    overcommit: flags.number("overcommit"),
    // What is wrong with the router is a finding.
    profile: readProfileFile(flags, flags.text("router-profile"), readText),
    cluster: clusterId === "" ? undefined : clusterHash(clusterId),
  };
  readGrace(flags, unexportGraceFor(options.profile?.answers ?? {}));
  if (kind === "directory") readNfsAddresses(flags, router.address);
  if (options.probe) assertOneFolder(flags, options.basePaths);
  flags.assertNoProblems();
  return options;
}

/** A probe makes and removes scratch volumes, and so where a person said, and nowhere else. */
function assertOneFolder(flags: FlagValues, folders: readonly string[]): void {
  const why = "for --probe, because it makes and removes scratch volumes there";
  if (!flags.isGiven("base-path")) flags.addProblems([`--base-path is required ${why}`]);
  else if (folders.length !== 1) flags.problem("base-path", folders.join(", "), `exactly one folder ${why}`);
}

/** Whether this machine is said to be a node. */
function isNode(flags: FlagValues): boolean {
  return flags.switch("node") || flags.isGiven("node-id");
}

/** Whether and how to probe, however the router is named. Problems are added to `flags`. */
function readProbing(flags: FlagValues): Pick<DoctorOptions, "probe" | "reboot" | "output"> {
  const probe = flags.switch("probe");
  const reboot = flags.switch("before-reboot") ? "before" : flags.switch("after-reboot") ? "after" : "";
  const output = flags.text("output");
  if (reboot !== "" && !probe) flags.addProblems([`--${reboot}-reboot goes with --probe`]);
  if (reboot === "before" && (flags.switch("after-reboot") || output !== "")) {
    flags.addProblems(["--before-reboot goes without --after-reboot and --output: it asks nothing yet"]);
  }
  if (!probe && output !== "") flags.addProblems(["--output goes with --probe"]);
  return { probe, reboot, output };
}
