// The permissions of each role of the executable, in one place: the build compiles them in, and `make demo` and
// `make sanity` run the sources with them. docs/internals/architecture.md says what this protects from.

import { clusterVariables, serviceAccountFolder } from "../src/cli/config/cluster.ts";
import * as flagTables from "../src/cli/config/flag_tables.ts";
import type { FlagTable } from "../src/cli/flags.ts";
import { kubeletFolders, moduleFolders } from "../src/cli/serve/privileges.ts";
import { libcPaths } from "../src/host/libc.ts";
import { allToolPaths } from "../src/host/tools.ts";

/** The permissions of a process. */
export interface Permissions {
  /** Programs it may run, as absolute paths. */
  readonly run: readonly string[];
  /** Libraries it may load, by their real paths. */
  readonly ffi: readonly string[];
  /** Folders it may read in. */
  readonly read: readonly string[];
  /** Folders it may write in. */
  readonly write: readonly string[];
  /** Hosts and ports; "any" because a router's address is a setting, which no build can know. */
  readonly net: readonly string[] | "any";
  /** Environment variables; all others look unset. */
  readonly env: readonly string[];
}

/** The roles of a process. */
export type Role = "controller" | "node" | "demo";

/** Where sidecars share the gRPC socket; the last one is that of the legacy driver's manifests. */
const SOCKET_FOLDERS = ["/csi", "/run/rds-csi", "/var/lib/csi/sockets/pluginproxy"];

/** Configuration and mounted credentials; never written. */
const SETTINGS_FOLDERS = ["/etc/rds-csi"];

/** A pod's own credentials, by both names of the folder; never written. */
const SERVICE_ACCOUNT_FOLDERS = [serviceAccountFolder, serviceAccountFolder.replace("/var/run/", "/run/")];

/** The demo and the simulator use their own scratch folder below it. */
const SCRATCH_FOLDERS = ["/tmp"];

/** The C library by its real path on both architectures: it is used for mounts' system calls, /proc, /sys and /dev. */
const LIBC = Object.values(libcPaths);

const CONTROLLER: Permissions = {
  run: [],
  ffi: [],
  read: [...SETTINGS_FOLDERS, ...SERVICE_ACCOUNT_FOLDERS, ...SOCKET_FOLDERS],
  write: SOCKET_FOLDERS,
  net: "any",
  env: environmentVariables(),
};

const NODE: Permissions = {
  ...CONTROLLER,
  run: allToolPaths,
  ffi: LIBC,
  read: [...CONTROLLER.read, ...kubeletFolders, ...moduleFolders],
  write: [...CONTROLLER.write, ...kubeletFolders],
};

const DEMO: Permissions = {
  ...NODE,
  read: [...NODE.read, ...SCRATCH_FOLDERS],
  write: [...NODE.write, ...SCRATCH_FOLDERS],
};

/**
 * The permissions of each role. The executable has the union, and a role gives up at its start what it does not need.
 */
export const PERMISSIONS: Readonly<Record<Role, Permissions>> = {
  controller: CONTROLLER,
  node: NODE,
  demo: DEMO,
};

/** The union of permissions. */
export function unionOf(all: readonly Permissions[]): Permissions {
  const merge = (key: "run" | "ffi" | "read" | "write" | "env") =>
    [...new Set(all.flatMap((one) => one[key]))].sort();
  const nets = all.map((one) => one.net);
  return {
    run: merge("run"),
    ffi: merge("ffi"),
    read: merge("read"),
    write: merge("write"),
    net: nets.includes("any") ? "any" : [...new Set((nets as string[][]).flat())].sort(),
    env: merge("env"),
  };
}

/** The flags with these permissions for `deno run` and `deno compile`. */
export function permissionFlags(permissions: Permissions): string[] {
  const { net } = permissions;
  const scoped = (name: string, values: readonly string[]) =>
    values.length > 0 ? [`--allow-${name}=${values.join(",")}`] : [];
  return [
    "--no-prompt",
    ...scoped("run", permissions.run),
    ...scoped("ffi", permissions.ffi),
    ...scoped("read", permissions.read),
    ...scoped("write", permissions.write),
    ...(net === "any" ? ["--allow-net"] : scoped("net", net)),
    ...scoped("env", permissions.env),
    // Libraries read their own variables: these must look unset, not fail.
    "--ignore-env",
  ];
}

/** Every variable that sets a flag, from the flags themselves, and the cluster's address. */
function environmentVariables(): string[] {
  const tables = Object.values(flagTables).filter((value): value is FlagTable => typeof value === "object");
  const names = tables.flatMap((table) => Object.values(table).flatMap((flag) => flag.env ?? []));
  return [...new Set([...names, ...clusterVariables])].sort();
}
