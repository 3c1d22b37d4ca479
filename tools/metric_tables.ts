import { controllerMetrics, leaderMetrics } from "../src/telemetry/controller_metrics.ts";
import { directoryMetrics } from "../src/telemetry/directory_metrics.ts";
import { grpcMetrics, processMetrics } from "../src/telemetry/driver_metrics.ts";
import { hardwareMetrics } from "../src/telemetry/hardware_metrics.ts";
import type { MetricTable } from "../src/telemetry/metrics.ts";
import { nodeMetrics, registrationMetrics } from "../src/telemetry/node_metrics.ts";
import { routerMetrics } from "../src/telemetry/router_metrics.ts";
import { volumeIoMetrics } from "../src/telemetry/volume_io.ts";

/** Every metric of the driver, by subject, for the documentation. */
export const metricTables: Readonly<Record<string, MetricTable>> = {
  "Calls": grpcMetrics,
  "Controllers": controllerMetrics,
  "Controllers and their router's drives": hardwareMetrics,
  "Controllers of a cluster": leaderMetrics,
  "Controllers and their router": routerMetrics,
  "Controllers of shared directories": directoryMetrics,
  "Nodes": nodeMetrics,
  "Nodes with --register": registrationMetrics,
  "Nodes with --volume-metrics": volumeIoMetrics,
  "The process": processMetrics,
};
