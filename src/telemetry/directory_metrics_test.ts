import assert from "node:assert/strict";
import { DirectoryMetrics } from "./directory_metrics.ts";
import { MetricRegistry } from "./metrics.ts";

Deno.test("DirectoryMetrics shows the share as it was read last, and counts removals", () => {
  const registry = new MetricRegistry();
  const metrics = new DirectoryMetrics(registry, "default");
  const lines = () => registry.expose().split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert.ok(lines().includes('rds_csi_directory_removals_total{backend="default",outcome="failed"} 0'));
  metrics.occurred({ kind: "share-read", isUsable: true, sizeBytes: 1n << 40n, freeBytes: 5n });
  metrics.occurred({ kind: "removals-pending", count: 2 });
  metrics.occurred({ kind: "removal-progress", path: "/share/x", part: "whole", left: 3 });
  metrics.occurred({ kind: "removal-ended", outcome: "removed" });
  assert.deepEqual(lines(), [
    'rds_csi_share_usable{backend="default"} 1',
    `rds_csi_share_size_bytes{backend="default"} ${2 ** 40}`,
    'rds_csi_share_free_bytes{backend="default"} 5',
    'rds_csi_directory_removals_pending{backend="default"} 2',
    'rds_csi_directory_removals_total{backend="default",outcome="removed"} 1',
    'rds_csi_directory_removals_total{backend="default",outcome="failed"} 0',
  ]);
});
