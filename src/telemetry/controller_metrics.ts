import type { ControllerEvents } from "../volume/controller_events.ts";
import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** What is counted of a controller's work. */
export const controllerMetrics = {
  rds_csi_unfenced_leavers_total: {
    type: "counter",
    help:
      "Nodes that left a volume which others go on using, and that the router could not be told to shut out.",
    labels: [],
  },
} as const satisfies MetricTable;

/** Counts what happens in a controller. */
export class ControllerMetrics implements ControllerEvents {
  readonly #meter: Meter<typeof controllerMetrics>;

  constructor(registry: MetricRegistry) {
    this.#meter = registry.declare(controllerMetrics);
  }

  leaverUnfenced(): void {
    this.#meter.add("rds_csi_unfenced_leavers_total");
  }
}
