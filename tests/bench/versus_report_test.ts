import assert from "node:assert/strict";
import { chart, table, type VersusRow } from "./versus_report.ts";

function row(driver: VersusRow["driver"], more: Partial<VersusRow> = {}): VersusRow {
  return {
    driver,
    delays: "none",
    disks: 100,
    inFlight: 1,
    rpc: "CreateVolume",
    calls: 10,
    failed: 0,
    p50Ms: driver === "ours" ? 5 : 10,
    perSecond: 100,
    commands: 2,
    bytes: 3000,
    processorMs: driver === "ours" ? 3 : 1,
    ...more,
  };
}

Deno.test("table() puts both drivers' figures of one call into a line, with their ratios", () => {
  const text = table([
    row("ours"),
    row("other"),
    row("ours", { disks: 1000 }),
    row("other", { disks: 1000, p50Ms: 2 }),
  ]);
  const lines = text.trimEnd().split("\n").slice(2);
  assert.deepEqual(lines, [
    "| CreateVolume | none | 100 | 1 | 2.0 / 2.0 | 3000 / 3000 | 5.0 / 10.0 | 0.50 | 100 / 100 | 3.0 / 1.0 | 3.00 |",
    "| CreateVolume | none | 1000 | 1 | 2.0 / 2.0 | 3000 / 3000 | 5.0 / 2.0 | 2.50 | 100 / 100 | 3.0 / 1.0 | 3.00 |",
  ]);
});

Deno.test("table() has no ratio where the other driver was not measured, or answered nothing", () => {
  const failed = row("other", { calls: 0, failed: 10, p50Ms: NaN, commands: NaN });
  const lines = table([row("ours"), failed, row("ours", { inFlight: 16 })]).trimEnd().split("\n").slice(2);
  assert.match(lines[0]!, /\| 2\.0 \/ - \| .* \| 5\.0 \/ - \(10 failed\) \| - \|/);
  assert.match(lines[1]!, /\| 16 \| 2\.0 \| 3000 \| 5\.0 \| - \| 100 \| 3\.0 \| - \|$/);
});

Deno.test("chart() draws a bar for each ratio, green up to the same time and red beyond", () => {
  const drawn = chart([
    row("ours"),
    row("other"),
    row("ours", { rpc: "DeleteVolume", p50Ms: 20 }),
    row("other", { rpc: "DeleteVolume" }),
  ]);
  assert.deepEqual(
    [...drawn.matchAll(/width="([\d.]+)" height="12" fill="(#\w+)"/g)].map(([, ...found]) => found),
    [
      ["45.0", "#2e7d32"],
      ["180.0", "#c62828"],
    ],
  );
});
