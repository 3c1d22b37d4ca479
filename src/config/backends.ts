import { type FlagValues } from "../flags.ts";
import { routerFlags } from "./flag_tables.ts";
import { type FileRouter, routerKeys, type RoutersParser } from "./router_keys.ts";
import {
  type ControllerConfig,
  maxNqnPrefixBytes,
  readClusterId,
  readKnownNodes,
  readNqnPrefix,
  readRouterSettings,
  type TextReader,
} from "./router_settings.ts";

/** What reading the file of `--config` needs beside the flags. */
export interface BackendSeams {
  readonly readText: TextReader;
  /** See `loadRoutersParser()`. */
  readonly parseRouters: RoutersParser | undefined;
  readonly ownNodes: readonly string[];
  readonly hasCluster: boolean;
}

/** The routers of the file of `--config`. What is wrong with it is noted with the flags' problems. */
export function readBackends(
  flags: FlagValues,
  { readText, parseRouters, ownNodes, hasCluster }: BackendSeams,
): readonly ControllerConfig[] {
  const file = flags.text("config");
  for (const { flag } of Object.values(routerKeys)) {
    if (flag === undefined || !flags.isGiven(flag)) continue;
    const reason = "is to be left out, with its environment variable: --config says it of each router";
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
  const { routers, problems } = parseRouters(text, file, routerFlags);
  flags.addProblems(problems);
  const backends = routers.map((router) => readBackend(router, shared, readText));
  for (const { flags: own } of routers) flags.addProblems(own.problems);
  flags.addProblems(sharedFolders(routers, backends));
  return backends;
}

/** Undefined when it cannot be read, which is noted. */
function readRoutersFile(flags: FlagValues, file: string, readText: TextReader): string | undefined {
  try {
    return readText(file);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    flags.problem("config", file, `a file that can be read (${reason})`);
    return undefined;
  }
}

/** A node finds a device by its NQN alone: each router has names of its own, whatever its volumes are called. */
function readBackend(
  { name, isDefault, topology, flags }: FileRouter,
  { clusterId, knownNodes, base }: {
    readonly clusterId: string;
    readonly knownNodes: readonly string[];
    readonly base: string;
  },
  readText: TextReader,
): ControllerConfig {
  const prefix = isDefault ? "" : `${name}/`;
  const nqnPrefix = isDefault ? base : `${base}:${name}`;
  if (nqnPrefix.length > maxNqnPrefixBytes) {
    flags.problem(
      "name",
      name,
      `a name that is at most ${maxNqnPrefixBytes} characters long together with --nqn-prefix`,
    );
  }
  const facts = { clusterId, knownNodes, nqnPrefix, prefix, backend: name };
  return { ...readRouterSettings(flags, facts, readText), isDefault, topology };
}

/** The same folder of one router, twice, is a slip: neither would know what the other has promised. */
function sharedFolders(
  routers: readonly FileRouter[],
  backends: readonly ControllerConfig[],
): readonly string[] {
  return backends.flatMap(({ router, settings }, index) => {
    const others = backends.slice(0, index).flatMap((other, at) => {
      if (other.router.address !== router.address || other.router.port !== router.port) return [];
      const both = settings.basePaths.find((path) =>
        other.settings.basePaths.some((one) => overlap(one, path))
      );
      return both === undefined ? [] : [{ both, at: routers[at]!.at.replace(/^.*: /, "") }];
    });
    return others.map(({ both, at }) =>
      `${routers[index]!.at}.basePaths cannot be ${
        JSON.stringify(both)
      }: allowed is a folder apart from those of ` +
      `${at}, which has the same address`
    );
  });
}

function overlap(one: string, other: string): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`);
}
