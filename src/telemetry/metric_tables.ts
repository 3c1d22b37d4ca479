import { controllerMetrics, leaderMetrics } from "./controller_metrics.ts";
import { grpcMetrics, processMetrics } from "./driver_metrics.ts";
import type { MetricTable } from "./metrics.ts";
import { nodeMetrics, registrationMetrics } from "./node_metrics.ts";
import { routerMetrics } from "./router_metrics.ts";
import { volumeIoMetrics } from "./volume_io.ts";

/** Every metric of the driver, by what it is about: for the documentation. */
export const metricTables: Readonly<Record<string, MetricTable>> = {
  "Calls": grpcMetrics,
  "Controllers": controllerMetrics,
  "Controllers of a cluster": leaderMetrics,
  "Controllers and their router": routerMetrics,
  "Nodes": nodeMetrics,
  "Nodes with --register": registrationMetrics,
  "Nodes with --volume-metrics": volumeIoMetrics,
  "The process": processMetrics,
};
