import type { MetricRegistry, MetricTable } from "./metrics.ts";

/** What is told of a controller that takes part in an election. */
export const leaderMetrics = {
  rds_csi_leader: {
    type: "gauge",
    help:
      "Whether this controller leads: it runs the loops, and with --leader-election it is the one that serves.",
    labels: [],
  },
} as const satisfies MetricTable;

/** Declares the metric; what it returns shows whether this controller leads. */
export function showsLeader(registry: MetricRegistry): (isLeading: boolean) => void {
  const meter = registry.declare(leaderMetrics);
  const show = (isLeading: boolean) => meter.set("rds_csi_leader", isLeading ? 1 : 0);
  show(false);
  return show;
}
