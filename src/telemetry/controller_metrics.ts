import { type AuditKind, auditKinds } from "../volume/audit_finding.ts";
import type { ControllerEvent, ControllerEvents } from "../volume/controller_events.ts";
import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** What is counted of a controller's work. */
export const controllerMetrics = {
  rds_csi_unfenced_leavers_total: {
    type: "counter",
    help:
      "Nodes that left a volume which others go on using, and that the router could not be told to shut out.",
    labels: [],
  },
  rds_csi_fenced_nodes_total: {
    type: "counter",
    help: "Nodes that were cut off from a volume without being asked.",
    labels: [],
  },
  rds_csi_attach_refusals_total: {
    type: "counter",
    help: "Attachments refused for a reason that stays until somebody does something.",
    labels: [],
  },
  rds_csi_overdue_migrations_total: {
    type: "counter",
    help: "Looks that found a volume shared by two nodes for longer than a migration may take.",
    labels: [],
  },
  rds_csi_exports_restored_total: {
    type: "counter",
    help:
      "Exports of volumes in use that were off, or other than their nodes knew them, and are right again.",
    labels: [],
  },
  rds_csi_unwanted_exports_total: {
    type: "counter",
    help: "Looks that found a volume exported which the cluster wants nowhere, by whether it was withdrawn.",
    labels: ["withdrawn"],
  },
  rds_csi_orphans: {
    type: "gauge",
    help: "What the last audit found without an owner, or without itself, by kind: see `rds-csi audit`.",
    labels: ["kind"],
  },
  rds_csi_last_audit_timestamp_seconds: {
    type: "gauge",
    help: "When the last audit was made; 0 while there was none.",
    labels: [],
  },
} as const satisfies MetricTable;

/** Counts what happens in a controller. */
export class ControllerMetrics implements ControllerEvents {
  readonly #meter: Meter<typeof controllerMetrics>;

  readonly #nowMs: () => number;

  /** @param nowMs the time, in milliseconds since the Unix epoch */
  constructor(registry: MetricRegistry, nowMs: () => number) {
    this.#meter = registry.declare(controllerMetrics);
    this.#nowMs = nowMs;
  }

  happened(event: ControllerEvent): void {
    switch (event.kind) {
      case "leaver-unfenced":
        return this.#meter.add("rds_csi_unfenced_leavers_total");
      case "fenced":
        return this.#meter.add("rds_csi_fenced_nodes_total", {}, event.nodeIds.length);
      case "attach-refused":
        return this.#meter.add("rds_csi_attach_refusals_total");
      case "migration-overdue":
        return this.#meter.add("rds_csi_overdue_migrations_total");
      case "export-restored":
        return this.#meter.add("rds_csi_exports_restored_total");
      case "export-unwanted":
        return this.#meter.add("rds_csi_unwanted_exports_total", { withdrawn: String(event.withdrawn) });
      case "out-of-space":
      case "health":
      case "older-epoch":
        // Counted as answers of calls, told as events, or both.
        return;
    }
  }

  audited(counts: ReadonlyMap<AuditKind, number>): void {
    for (const kind of Object.keys(auditKinds) as AuditKind[]) {
      this.#meter.set("rds_csi_orphans", counts.get(kind) ?? 0, { kind });
    }
    this.#meter.set("rds_csi_last_audit_timestamp_seconds", this.#nowMs() / 1000);
  }
}
