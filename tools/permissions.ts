// What each role of the executable may do, in one place: the build compiles it in, `make demo` and `make sanity` run the
// sources under it. docs/explanation/architecture.md says what this does and does not protect from.

import { clusterVariables, serviceAccountFolder } from "../src/cli/config/cluster.ts";
import * as flagTables from "../src/cli/config/flag_tables.ts";
import type { FlagTable } from "../src/cli/flags.ts";
import { libcPaths } from "../src/host/libc.ts";
import { allToolPaths } from "../src/host/tools.ts";

/** What a process may do. */
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
  /** Environment variables; all others look as if they were not set. */
  readonly env: readonly string[];
}

/** What a process can be. */
export type Role = "controller" | "node" | "demo";

/** The kubelet's folder: the usual one, k0s and MicroK8s. It holds staging and target paths, and the node's state. */
const KUBELET_FOLDERS = [
  "/var/lib/kubelet",
  "/var/lib/k0s/kubelet",
  "/var/snap/microk8s/common/var/lib/kubelet",
];

/** Where sidecars share the gRPC socket; the last as in the manifests of the legacy driver. */
const SOCKET_FOLDERS = ["/csi", "/run/rds-csi", "/var/lib/csi/sockets/pluginproxy"];

/** Lists of the kernel's modules, where a container is given them; never written. */
const MODULE_FOLDERS = ["/lib/modules", "/usr/lib/modules"];

/** Configuration and mounted credentials; never written. */
const SETTINGS_FOLDERS = ["/etc/rds-csi"];

/** A pod's own credentials, by both of the folder's names; never written. */
const SERVICE_ACCOUNT_FOLDERS = [serviceAccountFolder, serviceAccountFolder.replace("/var/run/", "/run/")];

/** The demo and the simulator work in a scratch folder of their own below it. */
const SCRATCH_FOLDERS = ["/tmp"];

/** The C library by its real path on both architectures: through it go mounts' system calls, /proc, /sys and /dev. */
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
  read: [...CONTROLLER.read, ...KUBELET_FOLDERS, ...MODULE_FOLDERS],
  write: [...CONTROLLER.write, ...KUBELET_FOLDERS],
};

const DEMO: Permissions = {
  ...NODE,
  read: [...NODE.read, ...SCRATCH_FOLDERS],
  write: [...NODE.write, ...SCRATCH_FOLDERS],
};

/** What each role needs. The executable holds the union, and a role gives up at its start what it does not need. */
export const PERMISSIONS: Readonly<Record<Role, Permissions>> = {
  controller: CONTROLLER,
  node: NODE,
  demo: DEMO,
};

/** What all roles together need. */
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

/** The flags that give these permissions to `deno run` and `deno compile`. */
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
    // Libraries ask for variables of their own: they are to find nothing, not to be refused.
    "--ignore-env",
  ];
}

/** Every variable that a flag can be set by, so that the list cannot fall behind the flags, and where the cluster is. */
function environmentVariables(): string[] {
  const tables = Object.values(flagTables).filter((value): value is FlagTable => typeof value === "object");
  const names = tables.flatMap((table) => Object.values(table).flatMap((flag) => flag.env ?? []));
  return [...new Set([...names, ...clusterVariables])].sort();
}
