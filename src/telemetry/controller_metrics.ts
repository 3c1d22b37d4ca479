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
} as const satisfies MetricTable;

/** Counts what happens in a controller. */
export class ControllerMetrics implements ControllerEvents {
  readonly #meter: Meter<typeof controllerMetrics>;

  constructor(registry: MetricRegistry) {
    this.#meter = registry.declare(controllerMetrics);
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
}
