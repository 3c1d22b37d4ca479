import type { CommandIo } from "../io.ts";
import { type FlagValues } from "../flags.ts";
import { messageAbout } from "../../volume/error_messages.ts";
import { splitHandle, VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import { canonicalAddress } from "../../volume/model/address.ts";
import { routerFlags } from "./flag_tables.ts";
import type { FileRouter, RoutersParser } from "./router_keys.ts";
import {
  areNested,
  type ControllerConfig,
  maxNqnPrefixBytes,
  readClusterId,
  readController,
  readKnownNodes,
  readNothing,
  readNqnPrefix,
  readRouterSettings,
  type TextReader,
} from "./router_settings.ts";

/** The files that flags name. */
export interface ConfigFiles {
  readonly readText: TextReader;
  /** See `loadRoutersParser()`. */
  readonly parseRouters?: RoutersParser | undefined;
}

/** For a command line without files. */
export const noFiles: ConfigFiles = { readText: readNothing };

/** This machine's files, for a command line. */
export async function systemFiles(args: readonly string[], env: CommandIo["env"]): Promise<ConfigFiles> {
  return { readText: Deno.readTextFileSync, parseRouters: await loadRoutersParser(args, env) };
}

/** The input for reading the routers besides the flags. */
export interface BackendAdapters extends ConfigFiles {
  /** Ids of nodes that are known in any case. @default {[]} */
  readonly ownNodes?: readonly string[];
  /** Whether there is a cluster that provides its own id. @default {false} */
  readonly hasCluster?: boolean;
}

/** Loads the YAML parser only for a command line that needs it: a node does not. */
export async function loadRoutersParser(
  args: readonly string[],
  env: CommandIo["env"],
): Promise<RoutersParser | undefined> {
  if (!env("RDS_CONFIG") && !args.some((arg) => /^--?config(?:=|$)/.test(arg))) return undefined;
  return (await import("./routers_file.ts")).parseRoutersFile;
}

/** The routers of the flags' file, or that of the flags. Problems are added to the flags' problems. */
export function readRouters(flags: FlagValues, adapters: BackendAdapters): readonly ControllerConfig[] {
  const { readText, ownNodes = [], hasCluster = false } = adapters;
  return flags.text("config") === ""
    ? [readController(flags, ownNodes, readText, hasCluster)]
    : readBackends(flags, adapters);
}

function readBackends(
  flags: FlagValues,
  { readText, parseRouters, ownNodes = [], hasCluster = false }: BackendAdapters,
): readonly ControllerConfig[] {
  const file = flags.text("config");
  for (const [flag, { key }] of Object.entries(routerFlags)) {
    if (key === undefined || !flags.isGiven(flag)) continue;
    const reason =
      "has to be omitted, with its environment variable, because --config sets it for each router";
    flags.addProblems([`--${flag} ${reason}`]);
  }
  const shared = {
    clusterId: readClusterId(flags, hasCluster),
    knownNodes: readKnownNodes(flags, ownNodes),
    base: readNqnPrefix(flags),
  };
  const text = readRoutersFile(flags, file, readText);
  if (text === undefined) return [];
  if (parseRouters === undefined) throw new TypeError("Cannot read --config without its parser");
  const { routers, problems } = parseRouters(text, file);
  flags.addProblems(problems);
  const backends = routers.map((router) => readBackend(router, shared, readText));
  for (const { flags: own } of routers) flags.addProblems(own.problems);
  flags.addProblems(sharedFolders(routers, backends));
  return backends;
}

/**
 * The routers for a command: that of the flags, or all of `--config`, or the one that `--backend` names. Problems are
 * added to the flags' problems.
 */
export function readChosenBackends(
  flags: FlagValues,
  adapters: BackendAdapters,
): readonly ControllerConfig[] {
  const all = readRouters(flags, adapters);
  if (flags.text("config") === "" || !flags.isGiven("backend")) return all;
  const name = flags.text("backend");
  const chosen = all.filter(({ settings }) => settings.backend === name);
  if (chosen.length === 0 && all.length > 0) flags.problem("backend", name, `one of ${namesOf(all)}`);
  return chosen;
}

/**
 * The one router for a command: `--backend`, or the default one. It must be read last, because it throws all problems.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readOneBackend(flags: FlagValues, adapters: BackendAdapters): ControllerConfig {
  const chosen = readChosenBackends(flags, adapters);
  const found = chosen.length === 1 ? chosen[0] : chosen.find(({ isDefault }) => isDefault);
  if (found === undefined && chosen.length > 0) {
    flags.addProblems([
      `--backend is required because --config has no default router; use one of ${namesOf(chosen)}`,
    ]);
  }
  return usable(flags, found);
}

/** A volume, and its router. */
export interface VolumeOfBackend {
  readonly config: ControllerConfig;
  /** The router's own id of it. */
  readonly id: string;
}

/**
 * The router of a command's volume: the id's prefix names it, or `--backend`, or it is the default one. It must be read
 * last, because it throws all problems.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readBackendOf(
  handle: string,
  flags: FlagValues,
  adapters: BackendAdapters,
): VolumeOfBackend {
  const [first, ...others] = readChosenBackends(flags, adapters);
  if (first === undefined || flags.text("config") === "") return { config: usable(flags, first), id: handle };
  const { backend, id } = splitHandle(handle);
  const isNamed = backend === "" && flags.isGiven("backend");
  const config = isNamed ? first : [first, ...others].find(({ ids }) => ids.strip(handle) !== undefined);
  if (config !== undefined) return { config: usable(flags, config), id };
  const why = backend === "" ? "no router is the default" : "no such router was chosen";
  flags.addProblems([
    `${handle} belongs to no router of --config because ${why}: use an id that begins with one of ` +
    `${namesOf([first, ...others])} and a slash, or set --backend`,
  ]);
  return { config: usable(flags, undefined), id };
}

/** Throws all problems, or returns the router; without one there is a problem. */
function usable(flags: FlagValues, config: ControllerConfig | undefined): ControllerConfig {
  flags.assertNoProblems();
  if (config === undefined) throw new TypeError("Cannot go on without a router");
  return config;
}

function namesOf(all: readonly ControllerConfig[]): string {
  return all.map(({ settings }) => settings.backend).join(", ");
}

/** Undefined when it cannot be read, which is added to the problems. */
function readRoutersFile(flags: FlagValues, file: string, readText: TextReader): string | undefined {
  try {
    return readText(file);
  } catch (error) {
    flags.problem("config", file, `a file that can be read (${messageAbout(file, error)})`);
    return undefined;
  }
}

/** A node finds a device by its NQN alone. So every router's NQNs contain its name, whatever its volumes are called. */
function readBackend(
  { name, isDefault, topology, flags }: FileRouter,
  { clusterId, knownNodes, base }: {
    readonly clusterId: string;
    readonly knownNodes: readonly string[];
    readonly base: string;
  },
  readText: TextReader,
): ControllerConfig {
  const nqnPrefix = isDefault ? base : `${base}:${name}`;
  if (nqnPrefix.length > maxNqnPrefixBytes) {
    flags.problem(
      "name",
      name,
      `a name that is at most ${maxNqnPrefixBytes} characters long together with --nqn-prefix`,
    );
  }
  const ids = new VolumeIdPrefix(isDefault ? "" : `${name}/`);
  const facts = { clusterId, knownNodes, nqnPrefix, ids, backend: name };
  return { ...readRouterSettings(flags, facts, readText), isDefault, topology };
}

/** Two routers of one are the same service, however it is written; one under two names nobody can tell. */
function addressOf({ router: { address, port } }: Pick<ControllerConfig, "router">): string {
  return `${canonicalAddress(address)} ${port}`;
}

/** The same folder of one router twice is a mistake: neither controller would know the other's promises. */
function sharedFolders(
  routers: readonly FileRouter[],
  backends: readonly ControllerConfig[],
): readonly string[] {
  return backends.flatMap(({ router, settings }, index) => {
    const others = backends.slice(0, index).flatMap((other, at) => {
      if (addressOf(other) !== addressOf({ router })) return [];
      const both = settings.basePaths.find((path) =>
        other.settings.basePaths.some((one) => areNested(one, path))
      );
      return both === undefined ? [] : [{ both, at: routers[at]!.at.replace(/^.*: /, "") }];
    });
    return others.map(({ both, at }) =>
      `${routers[index]!.at}.basePaths cannot be ${JSON.stringify(both)}; use a folder apart from those of ` +
      `${at}, which has the same address`
    );
  });
}
