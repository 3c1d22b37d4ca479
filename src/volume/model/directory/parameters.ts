import {
  assertDirectoryPath,
  type DirectoryContext,
  type DirectoryOwner,
  parseDirectoryOwner,
} from "./context.ts";
import { isInside, type NfsAddress, parseNfsAddresses } from "./handle.ts";
import { assertUnmarked } from "./names.ts";
import { poolOf } from "../ids/ids.ts";
import { VolumeError } from "../../errors.ts";

/** The controller's settings that fill in missing parameters of a StorageClass for directories. */
export interface DirectoryDefaults {
  /** Folders that directories may lie in, from the root of the server; all on one share. The first is the default. */
  readonly basePaths: readonly string[];
  readonly addresses: readonly NfsAddress[];
}

/** The parsed parameters of a StorageClass for directories. */
export interface DirectoryParameters extends DirectoryOwner {
  readonly addresses: readonly NfsAddress[];
  /** The folder that the directory is made in, from the root of the server. */
  readonly folder: string;
  /** Whether that folder is made if it is missing. */
  readonly makesFolder: boolean;
  /** Keys that have no effect. */
  readonly ignored: readonly string[];
}

/** A sentence of help for each key of a StorageClass for directories. */
export const directoryParameterHelp: Readonly<Record<string, string>> = {
  addresses:
    "Addresses of the NFS server, `host[:port]` separated by commas. Default: the controller's `--rds-address`.",
  path:
    "Folder in the share that directories are made in, at or below one of the controller's `--base-path`; `/` is the " +
    "share itself. Default: the first `--base-path`.",
  pathType:
    "`DirectoryOrCreate` makes the folder of `path` if it is missing; `Directory` refuses. Default: " +
    "`DirectoryOrCreate`.",
  directoryMode: "Permissions of a new directory in octal. Default: `0777`.",
  uid: "Owner of a new directory. Default: as the router makes it, which is root.",
  gid: "Group of a new directory. Default: as the router makes it, which is root.",
  mntPath: "A key of other drivers; ignored with a warning.",
};

/** Keys that the sidecars add or use themselves. */
const sidecarPrefix = "csi.storage.k8s.io/";

const defaultMode = 0o777;

/**
 * Parses the parameters of a StorageClass for directories.
 *
 * @throws {VolumeError} invalid for an unknown key or a value that is not allowed, naming both
 */
export function parseDirectoryParameters(
  parameters: Readonly<Record<string, string>>,
  defaults: DirectoryDefaults,
): DirectoryParameters {
  const own = Object.fromEntries(
    Object.entries(parameters).filter(([key]) => !key.startsWith(sidecarPrefix)),
  );
  for (const key of Object.keys(own)) assertKnown(key);
  const { mode = defaultMode, uid, gid } = parseDirectoryOwner(own);
  return {
    addresses: own["addresses"] === undefined
      ? defaults.addresses
      : parseNfsAddresses("addresses", own["addresses"]),
    folder: folderOf(own["path"], defaults),
    makesFolder: parsePathType(own["pathType"]),
    mode,
    uid,
    gid,
    ignored: Object.keys(own).filter((key) => key === "mntPath"),
  };
}

/** The volume context of a directory that was made by these parameters. */
export function contextOf(
  { addresses, mode, uid, gid }: DirectoryParameters,
  path: string,
): DirectoryContext {
  return { addresses, export: `/${poolOf(path)}`, path, mode, uid, gid };
}

function assertKnown(key: string): void {
  if (Object.hasOwn(directoryParameterHelp, key)) return;
  throw new VolumeError(
    "invalid",
    `Cannot use the StorageClass parameter because it is unknown: key=${JSON.stringify(key.slice(0, 64))}; ` +
      `known are ${Object.keys(directoryParameterHelp).join(", ")}`,
  );
}

/** The path of a StorageClass is one in the share, as a person sees it who has mounted the share. */
function folderOf(path: string | undefined, { basePaths }: DirectoryDefaults): string {
  const [first = ""] = basePaths;
  if (path === undefined) return first;
  assertDirectoryPath("path", path);
  assertUnmarked("path", path);
  const folder = `/${poolOf(first)}${path === "/" ? "" : path}`;
  if (basePaths.some((base) => isInside(folder, base)) && /^[A-Za-z0-9/._-]+$/.test(folder)) return folder;
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: path=${JSON.stringify(path.slice(0, 128))}; use a folder of A-Z, a-z, 0-9, ` +
      `., _ and - that is in the share at or below ${basePaths.join(" or ")} (--base-path), ` +
      `where / is the share /${poolOf(first)}`,
  );
}

function parsePathType(value = "DirectoryOrCreate"): boolean {
  if (value === "DirectoryOrCreate" || value === "Directory") return value === "DirectoryOrCreate";
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: pathType=${JSON.stringify(value.slice(0, 64))}; ` +
      "use Directory or DirectoryOrCreate",
  );
}
