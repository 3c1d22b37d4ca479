import type { DirectoryDefaults } from "../../volume/model/directory/parameters.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import type { DirectoryEvents } from "../../volume/ports/directory_events.ts";
import type { DirectoryStore } from "../../volume/ports/directory_store.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import type { Notes } from "../deps.ts";
import type { ChangesInDoubt } from "../records/in_doubt.ts";

/** What an operator sets for a controller of directories. */
export interface DirectorySettings extends DirectoryDefaults {
  /** This cluster's mark in the names of its directories, see `directoryMark()`. */
  readonly cluster: string;
  /** How long after its boot a router may still list more disks, in milliseconds. */
  readonly settleMs: number;
}

/** What the removal of directories needs. */
export interface RemovalDeps {
  readonly store: DirectoryStore;
  readonly clock: Clock;
  readonly settings: DirectorySettings;
  readonly notes: Notes;
  readonly events: DirectoryEvents;
  /** The paths of directories whose renaming was sent and may still come, by this controller or the one before it. */
  readonly inDoubt: ChangesInDoubt;
}

/** Everything that the controller's operations on directories need, handed in. */
export interface DirectoryDeps extends RemovalDeps {
  readonly random: Random;
  /** Undefined without a cluster. */
  readonly clusterView?: Pick<ClusterView, "objectsOf"> | undefined;
  /** Receives the paths of deleted directories, to be removed in the background. */
  readonly removals: {
    add(path: string): void;
    /** Whether this process has deleted the directory that had this path. */
    has(original: string): boolean;
  };
}

/** The mount point of the share, without slashes: the first segment of every base path. */
export function shareOf({ basePaths }: Pick<DirectorySettings, "basePaths">): string {
  return poolOf(basePaths[0] ?? "");
}
