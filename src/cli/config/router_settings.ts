import type { ControllerSettings } from "../../controller/deps.ts";
import { didYouMean, type FlagValues } from "../flags.ts";
import { answerReaders, type RouterBehaviours } from "../../router_profile/answers.ts";
import { describeNeeds } from "../../router_profile/limits.ts";
import { parseProfile, type RouterProfile } from "../../router_profile/profile.ts";
import { unexportGraceFor } from "../../router_profile/waits.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageAbout } from "../../volume/error_messages.ts";
import { assertNodeId } from "../../volume/model/ids/ids.ts";
import { backendClusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { backendNameWords, isBackendName, VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import { assertBasePath } from "../../volume/model/parameters.ts";
import { isHostAddress, parseNvmeAddresses } from "../../volume/model/address.ts";
import { maxNqnTailBytes, routerFlags } from "./flag_tables.ts";

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

/** The configuration of a controller for one router. */
export interface ControllerConfig {
  /** The form of its volumes' ids for clients. */
  readonly ids: VolumeIdPrefix;
  /** Whether it is the router of requests that name none. */
  readonly isDefault: boolean;
  /** Topology segments that can reach it; empty where none are configured. */
  readonly topology: Readonly<Record<string, string>>;
  readonly router: RouterConfig;
  /**
   * `cluster` is empty where no flag gives the cluster's id: then the cluster has to be asked, see {@linkcode
   * ServeConfig}.
   */
  readonly settings: ControllerSettings;
  readonly knownNodes: readonly string[];
  /** What is known about the router in particular. */
  readonly profile: RouterProfile | undefined;
}

/** Reads the configuration of a controller from the flags of a command that has those of `routerFlags`. */
export function readController(
  flags: FlagValues,
  ownNodes: readonly string[],
  readText: TextReader,
  hasCluster = false,
): ControllerConfig {
  const clusterId = readClusterId(flags, hasCluster);
  const knownNodes = readKnownNodes(flags, ownNodes);
  const shared = { clusterId, knownNodes, nqnPrefix: readNqnPrefix(flags), ids: VolumeIdPrefix.none };
  return {
    ...readRouterSettings(flags, { ...shared, backend: flags.text("backend") }, readText),
    isDefault: true,
    topology: {},
  };
}

/** The cluster's id from the flags. */
export function readClusterId(flags: FlagValues, hasCluster: boolean): string {
  if (hasCluster) return flags.text("cluster-id");
  return flags.required("cluster-id", "for the controller if there is no cluster to ask");
}

/** The nodes that are known without asking a cluster. */
export function readKnownNodes(flags: FlagValues, ownNodes: readonly string[]): readonly string[] {
  for (const node of flags.list("known-node")) check(flags, "known-node", node, () => assertNodeId(node));
  return [...new Set([...flags.list("known-node"), ...ownNodes])];
}

/** Settings of a router that do not come from its own flags or keys in the file. */
export interface RouterFacts {
  readonly clusterId: string;
  readonly knownNodes: readonly string[];
  readonly nqnPrefix: string;
  readonly ids: VolumeIdPrefix;
  readonly backend: string;
}

/** Reads the configuration of one router. */
export function readRouterSettings(
  flags: FlagValues,
  { clusterId, knownNodes, nqnPrefix, ids, backend }: RouterFacts,
  readText: TextReader,
): Pick<ControllerConfig, "ids" | "router" | "knownNodes" | "profile" | "settings"> {
  const router = readRouter(flags);
  const basePaths = readBasePaths(flags);
  const profile = readProfile(flags, nqnPrefix, readText);
  const answers = profile?.answers ?? {};
  return {
    ids,
    router,
    knownNodes,
    profile,
    settings: {
      cluster: clusterId === "" ? "" : backendClusterHash(clusterId, ids.text),
      backend,
      basePaths,
      nvmeAddress: readNvmeAddress(flags, router.address),
      nvmePort: flags.number("nvme-port"),
      nqnPrefix,
      routerAddress: router.address,
      routerPort: router.port,
      settleMs: flags.durationMs("settle-time"),
      unexportGraceMs: readGrace(flags, unexportGraceFor(answers)),
      overcommit: flags.number("overcommit"),
      ...readBehaviour(answers),
    },
  };
}

/** Questions without an answer are assumed to have that of Linux 5.6, which routers show. */
function readBehaviour(answers: Partial<RouterBehaviours>) {
  const { grow, subvolumeNames, copyReturns, sideEffects, bootIdentity, unexport } = answers;
  return {
    growth: grow ?? "after-toggle",
    growsByToggle: grow === "after-toggle" && typeof unexport === "number",
    subvolumeNames: subvolumeNames ?? "nested",
    copyReturns,
    harmsOthers: sideEffects === "ends-sessions",
    bootIdentity,
  };
}

/** The reader for a command line without files. */
export function readNothing(path: string): string {
  throw new TypeError(`there is nothing to read it with: ${path}`);
}

/** Reads what the router is known to do, and adds a problem if the driver cannot work with it. */
function readProfile(
  flags: FlagValues,
  nqnPrefix: string,
  readText: TextReader,
): RouterProfile | undefined {
  const path = flags.text("router-profile");
  const profile = readProfileFile(flags, path, readText);
  if (profile?.answers.limits === "too-small") {
    const needs = describeNeeds(nqnPrefix.length + maxNqnTailBytes);
    flags.problem(
      "router-profile",
      path,
      `the profile of a router with room for volumes: its limits are too small for ${needs}`,
    );
  }
  return profile;
}

/**
 * Reads the file of a profile; its problems are added to the flags'. An unknown question that resembles one of this
 * version is a problem too: a person who mistyped it by hand relies on its answer.
 */
export function readProfileFile(
  flags: FlagValues,
  path: string,
  readText: TextReader,
): RouterProfile | undefined {
  if (path === "") return undefined;
  try {
    return parseProfile(readText(path), (question) => {
      const hint = didYouMean(question, Object.keys(answerReaders));
      if (hint !== "") throw new RangeError(`There is no question ${question}${hint}`);
    });
  } catch (error) {
    flags.problem(
      "router-profile",
      path,
      `a file that \`rds-csi doctor --probe\` wrote (${messageAbout(path, error)})`,
    );
    return undefined;
  }
}

/** Returns the value of the flag if it is given, else the one from the router's profile. */
export function readGrace(flags: FlagValues, fromProfileMs: number | undefined): number {
  const name = "unexport-grace";
  if (flags.isGiven(name) || fromProfileMs === undefined) return flags.durationMs(name);
  const { most = Infinity } = routerFlags[name]!;
  if (fromProfileMs <= most) return fromProfileMs;
  const allowed = `a profile by which ${flags.nameOf(name)} is at most ${most / 1000}s (by this one it is ` +
    `${fromProfileMs / 1000}s); the flag itself may say otherwise`;
  flags.problem("router-profile", flags.text("router-profile"), allowed);
  return most;
}

/** Reads how to reach the router, and its required credentials and host keys. */
export function readRouter(flags: FlagValues): RouterConfig {
  const router = readRouterLoosely(flags);
  if (router.keyFile === undefined && router.passwordFile === undefined) {
    flags.required("rds-key", `for the controller, unless ${flags.nameOf("rds-password-file")} is given`);
  }
  if (router.hostKeys.length === 0 && !router.insecureSkipVerify) {
    flags.required("rds-host-key", "for the controller: what `ssh-keyscan` prints for the router");
  }
  return router;
}

/** The address of the router's SSH service: one host, also where `--nvme-address` names others. */
function readAddress(flags: FlagValues): string {
  const address = flags.required("rds-address", "for the controller");
  if (address !== "" && !isHostAddress(address)) {
    flags.problem("rds-address", address, "an IP address or a host name, without a port");
  }
  return address;
}

/**
 * Reads how to reach the router; credentials and host keys may be missing. Every command that has the router's flags
 * begins here, so that none takes what another refuses.
 */
export function readRouterLoosely(flags: FlagValues): RouterConfig {
  const router = {
    address: readAddress(flags),
    port: flags.number("rds-port"),
    user: flags.text("rds-user"),
    keyFile: flags.text("rds-key") || undefined,
    passwordFile: flags.text("rds-password-file") || undefined,
    hostKeys: flags.list("rds-host-key"),
    insecureSkipVerify: flags.switch("rds-insecure-skip-verify"),
  };
  checkSecretFile(flags, "rds-key", router.keyFile);
  checkSecretFile(flags, "rds-password-file", router.passwordFile);
  if (router.keyFile !== undefined && router.passwordFile !== undefined) {
    flags.addProblems([
      `${flags.nameOf("rds-key")} and ${flags.nameOf("rds-password-file")} exclude each other, ` +
      "with their environment variables: give the one that the router takes",
    ]);
  }
  for (const text of router.hostKeys) checkHostKey(flags, text);
  readKnownNodes(flags, []);
  if (!isBackendName(flags.text("backend"))) {
    flags.problem("backend", flags.text("backend"), backendNameWords);
  }
  return router;
}

/** A key or a password in place of its file is a common mistake, and would end up in an error message and in a log. */
function checkSecretFile(flags: FlagValues, name: string, path: string | undefined): void {
  if (path === undefined) return;
  const isPath = path.includes("/") && !/[\r\n]|-----/.test(path);
  if (isPath) return;
  flags.hiddenProblem(
    name,
    "the path of a file that holds the secret, with a slash in it",
  );
}

/** A key has several words: a single one is a path, which counts only as an absolute one. */
function checkHostKey(flags: FlagValues, text: string): void {
  if (text.startsWith("/") || /\s/.test(text.trim())) return;
  flags.problem(
    "rds-host-key",
    text,
    'the absolute path of a file of keys, or a key ("ssh-ed25519 AAAA…") or a known_hosts line in quotes',
  );
}

/** The folders on the router for volumes. */
export function readBasePaths(flags: FlagValues): readonly string[] {
  const basePaths = flags.list("base-path");
  for (const [at, path] of basePaths.entries()) {
    check(flags, "base-path", path, () => assertBasePath("base-path", path));
    const other = basePaths.slice(0, at).find((one) => areNested(one, path));
    if (other !== undefined) flags.problem("base-path", path, `a folder apart from ${other}`);
  }
  return basePaths;
}

/** Whether one folder is the other, or inside it: a file there would belong to both. */
export function areNested(one: string, other: string): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`);
}

/**
 * The addresses at which nodes reach volumes. An address that a node would refuse at every publish is refused before
 * there is a volume.
 *
 * @param fallback the router's own address, from `readRouterLoosely()`, which counts where the flag is missing
 */
export function readNvmeAddress(flags: FlagValues, fallback = ""): string {
  const given = flags.text("nvme-address");
  if (given === "") return fallback;
  check(flags, "nvme-address", given, () => parseNvmeAddresses("nvmeAddress", given));
  return given;
}

/** An NQN has at most 223 bytes; a slot and an epoch follow the prefix. */
export const maxNqnPrefixBytes = 160;

/** The prefix of the NQNs of this driver's exports. */
export function readNqnPrefix(flags: FlagValues): string {
  const prefix = flags.text("nqn-prefix");
  // With a colon one router's names could look like another's, and nodes refuse such a name.
  const valid = /^nqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+$/.test(prefix) &&
    prefix.length <= maxNqnPrefixBytes;
  if (!valid) flags.problem("nqn-prefix", prefix, "nqn.<year>-<month>.<reversed domain name>");
  return prefix;
}

/** Adds the problem that an assertion finds: only the end of its message, because the flag's own text has the rest. */
export function check(flags: FlagValues, name: string, value: string, assertion: () => void): void {
  try {
    assertion();
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    flags.problem(name, value, error.message.split("; ").at(-1)!.replace(/^(?:use|expected) /, ""));
  }
}
