import assert from "node:assert/strict";
import { allTools } from "../host/tools.ts";
import { MetricRegistry } from "./metrics.ts";
import { NodeMetrics } from "./node_metrics.ts";

function counting() {
  const registry = new MetricRegistry();
  const metrics = new NodeMetrics(registry);
  const value = (series: string) => {
    const line = registry.expose().split("\n").find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };
  return { metrics, value };
}

Deno.test("NodeMetrics counts each kind of event", () => {
  const { metrics, value } = counting();
  const events: readonly [() => void, string][] = [
    [() => metrics.occurred({ kind: "identity-mismatch" }), "rds_csi_identity_mismatches_total"],
    [
      () => metrics.occurred({ kind: "format-refused", reason: "unknown-data" }),
      'rds_csi_format_refusals_total{reason="unknown-data"}',
    ],
    [() => metrics.occurred({ kind: "connected", outcome: "ok" }), 'rds_csi_connects_total{outcome="ok"}'],
    [
      () => metrics.occurred({ kind: "connected", outcome: "failed" }),
      'rds_csi_connects_total{outcome="failed"}',
    ],
    [
      () => metrics.occurred({ kind: "stale-mount", finder: "publish" }),
      'rds_csi_stale_mounts_total{finder="publish"}',
    ],
    [
      () => metrics.occurred({ kind: "trimmed", outcome: "failed", bytes: 0n, atMs: 1 }),
      'rds_csi_trims_total{outcome="failed"}',
    ],
    [
      () => metrics.occurred({ kind: "trimmed", outcome: "unsupported", bytes: 0n, atMs: 1 }),
      'rds_csi_trims_total{outcome="unsupported"}',
    ],
    [() => metrics.occurred({ kind: "fenced-torn-down" }), "rds_csi_fenced_volumes_torn_down_total"],
  ];
  for (const [occur, series] of events) {
    assert.equal(value(series), 0, series);
    occur();
    assert.equal(value(series), 1, series);
  }
  const hung = (operation: string) => value(`rds_csi_hung_operations_total{operation="${operation}"}`);
  for (const operation of ["file", ...allTools]) assert.equal(hung(operation), 0, operation);
  metrics.occurred({ kind: "operation-hung", operation: "stat" });
  assert.deepEqual([hung("stat"), hung("file")], [1, 0]);
});

Deno.test("NodeMetrics shows how many volumes are staged, however often that is reported", () => {
  const { metrics, value } = counting();
  for (const volumeId of ["pvc-1", "pvc-2", "pvc-1"]) {
    metrics.occurred({ kind: "staged", volumeId, staged: true });
  }
  assert.equal(value("rds_csi_staged_volumes"), 2);
  metrics.occurred({ kind: "staged", volumeId: "pvc-1", staged: false });
  metrics.occurred({ kind: "staged", volumeId: "pvc-3", staged: false });
  assert.equal(value("rds_csi_staged_volumes"), 1);
});

Deno.test("NodeMetrics adds up what was trimmed, and shows the time of the last trim", () => {
  const { metrics, value } = counting();
  const seen = () => ["ok", "failed"].map((outcome) => value(`rds_csi_trims_total{outcome="${outcome}"}`));
  assert.equal(value("rds_csi_last_trim_timestamp_seconds"), 0);
  metrics.occurred({ kind: "trimmed", outcome: "ok", bytes: 4096n, atMs: 1_000 });
  metrics.occurred({ kind: "trimmed", outcome: "ok", bytes: 1024n, atMs: 2_000 });
  metrics.occurred({ kind: "trimmed", outcome: "failed", bytes: 0n, atMs: 3_000 });
  assert.deepEqual(seen(), [2, 1]);
  assert.equal(value("rds_csi_trimmed_bytes_total"), 5120);
  assert.equal(value("rds_csi_last_trim_timestamp_seconds"), 2);
});

Deno.test("NodeMetrics shows how many volumes wait for their device, however often that is reported", () => {
  const { metrics, value } = counting();
  assert.equal(value("rds_csi_waiting_volumes"), 0);
  for (const volumeId of ["pvc-1", "pvc-2", "pvc-1"]) {
    metrics.occurred({ kind: "waiting", volumeId, waits: true });
  }
  assert.equal(value("rds_csi_waiting_volumes"), 2);
  metrics.occurred({ kind: "waiting", volumeId: "pvc-1", waits: false });
  metrics.occurred({ kind: "waiting", volumeId: "pvc-3", waits: false });
  assert.equal(value("rds_csi_waiting_volumes"), 1);
});

Deno.test("NodeMetrics reports how long tools ran", () => {
  const { metrics, value } = counting();
  metrics.occurred({ kind: "tool-ran", tool: "mount", seconds: 0.2 });
  metrics.occurred({ kind: "tool-ran", tool: "mount", seconds: 0.3 });
  assert.deepEqual(
    [
      value('rds_csi_tool_seconds_count{tool="mount"}'),
      value('rds_csi_tool_seconds_sum{tool="mount"}'),
    ],
    [2, 0.5],
  );
});
