import { VolumeError } from "../../volume/errors.ts";
import {
  maxDirectoryPathBytes,
  type NfsAddress,
  parseNfsAddresses,
} from "../../volume/model/directory/handle.ts";
import { assertUnmarked, directoryMark, markedName } from "../../volume/model/directory/names.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import type { DirectorySettings } from "../../controller/directories/deps.ts";
import type { FlagValues } from "../flags.ts";
import { check, readBasePaths, readClusterId, readRouter, type RouterConfig } from "./router_settings.ts";

/** What a driver serves: block volumes, or shared directories. */
export type DriverKind = "block" | "directory";

/** The default name of a driver of directories: a CSIDriver object of its own. */
export const directoryDriverName = "rds-directory.csi.srvlab.io";

/** The configuration of a controller of directories. */
export interface DirectoryControllerConfig {
  /** The router's name in metrics. */
  readonly backend: string;
  readonly router: RouterConfig;
  /** `cluster` is empty where no flag gives the cluster's id: then the cluster has to be asked. */
  readonly settings: DirectorySettings;
}

/** The longest folder for directories, in bytes: a directory's name of a provisioner and its mark have to fit behind. */
export const maxDirectoryFolderBytes = maxDirectoryPathBytes - 1 -
  markedName("pvc-00000000-0000-0000-0000-000000000000", "00000000").length;

/** Reads the configuration of a controller of directories; problems are noted in the flags. */
export function readDirectoryController(
  flags: FlagValues,
  hasCluster: boolean,
): DirectoryControllerConfig {
  refuseSeveralRouters(flags);
  const clusterId = readClusterId(flags, hasCluster);
  const router = readRouter(flags);
  return {
    backend: flags.text("backend"),
    router,
    settings: {
      cluster: clusterId === "" ? "" : directoryMark(clusterHash(clusterId)),
      basePaths: readDirectoryFolders(flags),
      addresses: readNfsAddresses(flags, router.address),
      settleMs: flags.durationMs("settle-time"),
    },
  };
}

/** The folders for directories. The share is the first segment of all; it is never the default of block volumes. */
export function readDirectoryFolders(flags: FlagValues): readonly string[] {
  if (!flags.isGiven("base-path")) {
    const what =
      "the folder for directories, such as /share, whose first name is the mount point of the share";
    flags.addProblems([`--base-path is required: ${what}`]);
    return [];
  }
  const folders = readBasePaths(flags);
  for (const folder of folders) {
    check(flags, "base-path", folder, () => assertUnmarked("base-path", folder));
    if (poolOf(folder) !== poolOf(folders[0]!)) {
      flags.problem(
        "base-path",
        folder,
        `folders of one share with --kind directory, such as /${poolOf(folders[0]!)}/…`,
      );
    }
    if (folder.length > maxDirectoryFolderBytes) {
      flags.problem(
        "base-path",
        folder,
        `at most ${maxDirectoryFolderBytes} characters with --kind directory`,
      );
    }
  }
  return folders;
}

/** A share is one router's. */
export function refuseSeveralRouters(flags: FlagValues): void {
  const file = flags.text("config");
  if (file === "") return;
  flags.problem("config", file, "the flags of one router: --kind directory serves one share of one router");
}

/** The addresses of the share; problems are noted in the flags. */
export function readNfsAddresses(flags: FlagValues, address: string): readonly NfsAddress[] {
  if (address === "") return [];
  check(flags, "rds-address", address, () => parseNfsAddresses("addresses", address));
  try {
    return parseNfsAddresses("addresses", address);
  } catch (error) {
    if (VolumeError.is(error)) return [];
    throw error;
  }
}
