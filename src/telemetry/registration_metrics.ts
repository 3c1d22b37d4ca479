import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** What is counted of a driver that registers itself with the kubelet. */
export const registrationMetrics = {
  rds_csi_kubelet_registered: {
    type: "gauge",
    help: "Whether the kubelet has registered the driver, by what it said last.",
    labels: [],
  },
  rds_csi_kubelet_registrations_total: {
    type: "counter",
    help: "What the kubelet said of the driver's registration, by outcome: ok or failed.",
    labels: ["outcome"],
  },
} as const satisfies MetricTable;

/** Counts what happens to a driver's registration. */
export class RegistrationMetrics {
  readonly #meter: Meter<typeof registrationMetrics>;

  constructor(registry: MetricRegistry) {
    this.#meter = registry.declare(registrationMetrics);
    for (const outcome of ["ok", "failed"]) {
      this.#meter.add("rds_csi_kubelet_registrations_total", { outcome }, 0);
    }
  }

  /** The kubelet has said that the driver is registered, or that it could not be. */
  notified(outcome: "ok" | "failed"): void {
    this.#meter.add("rds_csi_kubelet_registrations_total", { outcome });
    this.#meter.set("rds_csi_kubelet_registered", outcome === "ok" ? 1 : 0);
  }

  /** The kubelet cannot know of the driver any more. */
  lost(): void {
    this.#meter.set("rds_csi_kubelet_registered", 0);
  }
}
