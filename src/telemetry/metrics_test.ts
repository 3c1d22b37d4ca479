import assert from "node:assert/strict";
import { MetricRegistry, type MetricTable } from "./metrics.ts";

const table = {
  acts_total: { type: "counter", help: "Acts.", labels: [] },
  refusals_total: { type: "counter", help: "Refusals.", labels: ["reason"] },
  volumes: { type: "gauge", help: "Volumes.", labels: [] },
  duration_seconds: { type: "histogram", help: "Time.", labels: ["method"], buckets: [0.1, 1, 10] },
} as const satisfies MetricTable;

Deno.test("expose() shows metrics without labels at zero, and declares the rest", () => {
  const registry = new MetricRegistry();
  registry.declare(table);
  assert.equal(
    registry.expose(),
    [
      ...["# HELP acts_total Acts.", "# TYPE acts_total counter", "acts_total 0"],
      ...["# HELP refusals_total Refusals.", "# TYPE refusals_total counter"],
      ...["# HELP volumes Volumes.", "# TYPE volumes gauge", "volumes 0"],
      ...["# HELP duration_seconds Time.", "# TYPE duration_seconds histogram", ""],
    ].join("\n"),
  );
});

Deno.test("expose() shows counters and gauges by their labels", () => {
  const registry = new MetricRegistry();
  const meter = registry.declare(table);
  meter.add("acts_total");
  meter.add("acts_total", {}, 2.5);
  meter.add("refusals_total", { reason: "a" }, 0);
  meter.add("refusals_total", { reason: "b" });
  meter.add("refusals_total", { reason: "b" });
  meter.set("volumes", 7);
  const lines = registry.expose().split("\n");
  for (const expected of ["acts_total 3.5", 'refusals_total{reason="a"} 0', 'refusals_total{reason="b"} 2']) {
    assert.ok(lines.includes(expected), expected);
  }
  assert.ok(lines.includes("volumes 7"));
});

Deno.test("expose() reads a gauge with a reader every time", () => {
  const registry = new MetricRegistry();
  let volumes = 1;
  registry.declare(table).read("volumes", () => volumes);
  assert.match(registry.expose(), /^volumes 1$/m);
  volumes = 4;
  assert.match(registry.expose(), /^volumes 4$/m);
});

Deno.test("expose() counts each value of a histogram in its bucket and all above it", () => {
  const registry = new MetricRegistry();
  const meter = registry.declare(table);
  for (const value of [0.05, 0.1, 0.5, 10, 11]) meter.observe("duration_seconds", value, { method: "Probe" });
  const lines = registry.expose().split("\n").filter((line) => line.startsWith("duration_seconds"));
  assert.deepEqual(lines, [
    'duration_seconds_bucket{method="Probe",le="0.1"} 2',
    'duration_seconds_bucket{method="Probe",le="1"} 3',
    'duration_seconds_bucket{method="Probe",le="10"} 4',
    'duration_seconds_bucket{method="Probe",le="+Inf"} 5',
    'duration_seconds_sum{method="Probe"} 21.65',
    'duration_seconds_count{method="Probe"} 5',
  ]);
});

Deno.test("expose() escapes what would break a line", () => {
  const registry = new MetricRegistry();
  registry.declare(table).add("refusals_total", { reason: 'a"b\\c\nd' });
  assert.ok(registry.expose().includes('refusals_total{reason="a\\"b\\\\c\\nd"} 1\n'));
});

Deno.test("declare() refuses a name that is taken or not allowed", () => {
  const registry = new MetricRegistry();
  registry.declare(table);
  assert.throws(() => registry.declare({ ...table }), TypeError);
  registry.declare(table); // As for another router.
  assert.throws(() => registry.declare({ "a-b": table.volumes }), TypeError);
});

Deno.test("expose() leaves out a gauge that was dropped, until it is set again", () => {
  const registry = new MetricRegistry();
  const meter = registry.declare({ bytes: { type: "gauge", help: "Bytes.", labels: ["pool"] } });
  meter.set("bytes", 1, { pool: "a" });
  meter.set("bytes", 2, { pool: "b" });
  meter.drop("bytes", { pool: "a" });
  meter.drop("bytes", { pool: "never set" });
  assert.equal(registry.expose().includes('bytes{pool="a"}'), false);
  assert.ok(registry.expose().includes('bytes{pool="b"} 2'));
  meter.set("bytes", 3, { pool: "a" });
  assert.ok(registry.expose().includes('bytes{pool="a"} 3'));
});
