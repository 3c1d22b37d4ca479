import type { EventListener } from "./event_listener.ts";
import type { AuditKind } from "../model/audit_kinds.ts";
import type { JudgedHardware } from "../model/health/hardware.ts";
import type { Totals } from "../model/totals.ts";
import type { HealthProblem } from "../model/health/health.ts";

/** A claim by name, for a volume that does not exist yet. */
export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** An event in a controller that people may have to act on. */
export type ReportedEvent =
  /** A node left a volume that stays exported for others, so that nothing shuts it out. */
  | {
    readonly kind: "leaver-unfenced";
    readonly volumeId: string;
    readonly nodeId: string;
    readonly remaining: readonly string[];
  }
  /** All nodes of a volume were disconnected from it without being asked. */
  | { readonly kind: "fenced"; readonly volumeId: string; readonly nodeIds: readonly string[] }
  /** A node may not attach a volume, until a person acts. */
  | {
    readonly kind: "attach-refused";
    readonly volumeId: string;
    readonly nodeId: string;
    readonly message: string;
  }
  /** A volume waits for a node that has not registered the driver, so that it cannot be attached there. */
  | { readonly kind: "node-without-driver"; readonly volumeId: string; readonly nodeName: string }
  /** The pool has no room for a volume: a new one, which has only a claim yet, one that is to grow, or a snapshot. */
  | { readonly kind: "out-of-space"; readonly about: string | ClaimRef; readonly message: string }
  /** The problems of a volume have changed; there are none when it is healthy again. */
  | { readonly kind: "health"; readonly volumeId: string; readonly problems: readonly HealthProblem[] }
  /** Two nodes share a volume for longer than a migration may take. */
  | {
    readonly kind: "migration-overdue";
    readonly volumeId: string;
    readonly older: string;
    readonly newer: string;
    readonly limitSeconds: number;
  }
  /** The export of a volume that nodes hold was off or different, and was restored. */
  | { readonly kind: "export-restored"; readonly volumeId: string; readonly nodeIds: readonly string[] }
  /** A volume is exported, and the cluster wants it nowhere. */
  | {
    readonly kind: "export-unwanted";
    readonly volumeId: string;
    readonly nodeIds: readonly string[];
    /** Whether the export was withdrawn; otherwise it is only reported. */
    readonly withdrawn: boolean;
  }
  /** The router has lost the latest changes of a volume: the cluster knows of a later epoch. */
  | {
    readonly kind: "older-epoch";
    readonly volumeId: string;
    readonly recorded: number;
    readonly known: number;
    readonly withdrawn: boolean;
  };

/** An event in a controller. */
export type ControllerEvent =
  | ReportedEvent
  /**
   * The counts of an audit's findings by kind; a kind that is left out has none. Without counts this controller makes
   * no audits any more, and its last findings are out of date.
   */
  | { readonly kind: "audited"; readonly counts: ReadonlyMap<AuditKind, number> | undefined }
  /** The router's arrays and drives were read; without a reading this controller reads them no more. */
  | { readonly kind: "hardware-read"; readonly read: JudgedHardware | undefined }
  /** The totals of an inventory that was read for another purpose, at that time (`Clock.now()`). */
  | { readonly kind: "inventory-read"; readonly totals: Totals; readonly atMs: number };

/** Receives the events of a controller. */
export type ControllerEvents = EventListener<ControllerEvent>;
