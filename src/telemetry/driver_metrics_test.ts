import assert from "node:assert/strict";
import { GrpcMetrics } from "./driver_metrics.ts";
import { MetricRegistry } from "./metrics.ts";

Deno.test("GrpcMetrics counts calls by method and code, and their time by method", () => {
  const registry = new MetricRegistry();
  const metrics = new GrpcMetrics(registry);
  const path = "/csi.v1.Node/NodeStageVolume";
  for (const code of ["OK", "OK", "FAILED_PRECONDITION", "CANCELLED", "NOT_FOUND"]) {
    metrics.count({ path, code, durationMs: 20 });
  }
  const lines = registry.expose().split("\n");
  const labels = 'grpc_type="unary",grpc_service="csi.v1.Node",grpc_method="NodeStageVolume"';
  for (const [code, count] of [["OK", 2], ["FailedPrecondition", 1], ["Canceled", 1], ["NotFound", 1]]) {
    assert.ok(
      lines.includes(`grpc_server_handled_total{${labels},grpc_code="${code}"} ${count}`),
      String(code),
    );
  }
  assert.ok(lines.includes(`grpc_server_handling_seconds_bucket{${labels},le="0.01"} 0`));
  assert.ok(lines.includes(`grpc_server_handling_seconds_bucket{${labels},le="0.025"} 5`));
  assert.ok(lines.includes(`grpc_server_handling_seconds_sum{${labels}} 0.1`));
});
