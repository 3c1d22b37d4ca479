import type { StoredVolume, VolumeView } from "../volume/model/inventory.ts";
import type { SubvolumeNames } from "../volume/model/layout.ts";
import type { ClusterView } from "../volume/ports/cluster_view.ts";
import type { ControllerEvents } from "../volume/ports/controller_events.ts";
import type {
  DetachedNodes,
  FormatConsents,
  MigrationPairs,
  NodeDirectory,
} from "../volume/ports/cluster_ports.ts";
import type { ParameterDefaults } from "../volume/model/parameters.ts";
import type { CallContext, Clock, Random } from "../volume/ports/system.ts";
import type { VolumeStore } from "../volume/ports/store.ts";
import type { VolumeProjection } from "../volume/ports/projection.ts";
import type { ImportClaim } from "../volume/rules/import.ts";
import type { CopyAbout, FinishedCopy, ImageCopies } from "./volumes/copies.ts";
import type { HardwareMemory } from "./hardware/memory.ts";
import type { MisplacedVolumes } from "./misplaced.ts";
import type { VolumeMemory } from "./records/memory.ts";
import type { PromisedRoom } from "./volumes/promised_room.ts";

/** What an operator sets for the controller. */
export interface ControllerSettings extends ParameterDefaults {
  /** Hash of this cluster's id, see `clusterHash()`. */
  readonly cluster: string;
  /** How long after its boot a router may still bring disks back, in milliseconds. */
  readonly settleMs: number;
  /** How long an export may linger after its withdrawal, in milliseconds. */
  readonly unexportGraceMs: number;
  /** How much of a pool may be promised; 1 promises exactly its size. */
  readonly overcommit: number;
  /** When the router shows a larger size of a disk that it exports. */
  readonly growth: "live" | "after-toggle";
  /**
   * Whether the router is known to show a new size after a toggle of an export, and to end the sessions of its hosts by that: a
   * device layer outlasts a lost connection, and no refused command.
   */
  readonly growsByToggle: boolean;
  /** Where subvolumes may be made. */
  readonly subvolumeNames: SubvolumeNames;
  /** Whether the router ends the sessions of hosts to other disks when one comes, goes or changes: it gets no new volume. */
  readonly harmsOthers: boolean;
  /** Whether hosts find the same namespace after a boot of the router; undefined while that is not known. */
  readonly bootIdentity: "kept" | "new" | undefined;
  /** When the router answers a copy of a file; undefined while that is not known. */
  readonly copyReturns: "when-done" | "at-once" | undefined;
}

/** Reports to people, beside the answer of a call. */
export interface Notes {
  /** Something odd that did not stop the call. */
  warn(message: string, fields: Readonly<Record<string, unknown>>): void;
}

/** Who changes which volume right now: what is done without a call takes the same locks as calls do. */
export interface VolumeLocking {
  /** Takes all keys, or none. Returns a function that releases them; undefined when another holder has one. */
  tryTake(keys: readonly string[], holder: string): (() => void) | undefined;
}

/**
 * Makes a disk that this driver did not make a volume of this cluster, for a call that is going to change it. Any other is left as
 * it is. No command for those; else one or two.
 *
 * @param read a look at the slot, in which the disk is
 * @param claim what a disk without a record is to be imported as; without it such a disk is left alone
 * @returns the disk as it is now
 * @throws {VolumeError} precondition on any doubt, or when the record does not fit; busy or unavailable
 */
export type TakeOver = (
  call: ControllerCall,
  read: VolumeView & { readonly id: string },
  disk: StoredVolume,
  claim?: ImportClaim,
) => Promise<StoredVolume>;

/** Everything the controller's operations need, handed in. */
export interface ControllerDeps {
  readonly store: VolumeStore;
  readonly nodes: NodeDirectory;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ControllerSettings;
  readonly notes: Notes;
  readonly events: ControllerEvents;
  readonly projection: VolumeProjection;
  readonly locks: VolumeLocking;
  /** Who may share a volume for a migration. */
  readonly pairs: MigrationPairs;
  readonly detachedNodes: DetachedNodes;
  readonly takeOver: TakeOver;
  readonly memory: VolumeMemory;
  readonly promised: PromisedRoom;
  /** What is wrong with the router's arrays and drives, as far as this controller has read it. */
  readonly hardware: HardwareMemory;
  readonly copies: ImageCopies<CopyAbout, FinishedCopy>;
  /** What owners of claims allow; undefined where there is no cluster to ask. */
  readonly consents?: FormatConsents | undefined;
  /** What the cluster uses; undefined where there is none to ask. */
  readonly clusterView?: ClusterView | undefined;
  /** What the other routers of a file have of this one's; undefined for the only router. */
  readonly misplaced?: MisplacedVolumes | undefined;
}

/** The dependencies of one call: everything above, and how long the call may take. */
export interface ControllerCall extends ControllerDeps {
  readonly context: CallContext;
}
