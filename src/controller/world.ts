import type { ParameterDefaults } from "../volume/parameters.ts";
import type { Clock, NodeDirectory, Random, VolumeStore } from "../volume/ports.ts";
import type { UnsettledChanges } from "./unsettled.ts";
import type { ConfirmedWithdrawals } from "./withdrawals.ts";

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
}

/** What is worth telling a person, beside the answer of a call. */
export interface Notes {
  /** Something odd that did not stop the call. */
  warn(message: string, fields: Readonly<Record<string, unknown>>): void;
}

/** Everything the controller's operations need, handed in. */
export interface ControllerWorld {
  readonly store: VolumeStore;
  readonly nodes: NodeDirectory;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ControllerSettings;
  readonly notes: Notes;
  readonly withdrawals: ConfirmedWithdrawals;
  readonly unsettled: UnsettledChanges;
}
