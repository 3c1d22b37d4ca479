import type { EventListener } from "./event_listener.ts";
import type { AuditKind } from "../model/audit_kinds.ts";
import type { Totals } from "../model/totals.ts";
import type { HealthProblem } from "../model/health.ts";

/** A claim by name, where there is no volume yet. */
export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Something that happens in a controller, and that people may have to act on. */
export type ReportedEvent =
  /** A node left a volume that goes on being exported for others, and the router could not be told to shut it out. */
  | {
    readonly kind: "leaver-unfenced";
    readonly volumeId: string;
    readonly nodeId: string;
    readonly remaining: readonly string[];
  }
  /** Nodes lost a volume without being asked: all of them, or one that left others. */
  | {
    readonly kind: "fenced";
    readonly volumeId: string;
    readonly nodeIds: readonly string[];
    readonly remaining: readonly string[];
  }
  /** A node may not have a volume, and that stays so until somebody does something. */
  | {
    readonly kind: "attach-refused";
    readonly volumeId: string;
    readonly nodeId: string;
    readonly message: string;
  }
  /** A volume waits for a node that has not registered the driver, so that it cannot be attached there. */
  | { readonly kind: "node-without-driver"; readonly volumeId: string; readonly nodeName: string }
  /** The pool has no room for a volume: a new one, of which only the claim is there, one that is to grow, or a snapshot. */
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
  /** The export of a volume that nodes hold was off, or other than they know it, and is as it should be again. */
  | { readonly kind: "export-restored"; readonly volumeId: string; readonly nodeIds: readonly string[] }
  /** The cluster wants a volume nowhere that is exported. */
  | {
    readonly kind: "export-unwanted";
    readonly volumeId: string;
    readonly nodeIds: readonly string[];
    /** Whether the export was withdrawn; it is only reported otherwise. */
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

/** Something that happens in a controller. */
export type ControllerEvent =
  | ReportedEvent
  /**
   * An audit has found so many things without an owner, by kind; a kind that is left out has none. Without counts this
   * controller makes no audits any more, and what it found says nothing about today.
   */
  | { readonly kind: "audited"; readonly counts: ReadonlyMap<AuditKind, number> | undefined }
  /** A look at the whole router that was made for something else has shown this, at that time (`Clock.now()`). */
  | { readonly kind: "inventory-read"; readonly totals: Totals; readonly atMs: number };

/** Hears what happens in a controller. */
export type ControllerEvents = EventListener<ControllerEvent>;
