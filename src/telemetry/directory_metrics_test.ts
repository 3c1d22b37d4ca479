import assert from "node:assert/strict";
import { DirectoryMetrics } from "./directory_metrics.ts";
import { MetricRegistry } from "./metrics.ts";

Deno.test("DirectoryMetrics shows the share as it was read last, and how many removals wait", () => {
  const registry = new MetricRegistry();
  const metrics = new DirectoryMetrics(registry, "default");
  const lines = () => registry.expose().split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  metrics.occurred({ kind: "share-read", isUsable: true, freeBytes: 5n });
  metrics.occurred({ kind: "removals-pending", count: 2 });
  metrics.occurred({ kind: "removal-progress", path: "/share/x", part: "whole", left: 3 });
  assert.deepEqual(lines(), [
    'rds_csi_share_usable{backend="default"} 1',
    'rds_csi_share_free_bytes{backend="default"} 5',
    'rds_csi_directory_removals_pending{backend="default"} 2',
  ]);
});
