import assert from "node:assert/strict";
import { allMetrics, chartDashboard, chartQueries, faultsOf, type Query, tableMetricsOf } from "./queries.ts";

Deno.test("every query of the dashboard and of the alerts can match the driver's metrics", () => {
  const queries = chartQueries();
  assert.ok(queries.length > 40, `${queries.length} queries`);
  const faults = queries.flatMap((query) => faultsOf(query).map((fault) => `${query.where}: ${fault}`));
  assert.deepEqual(faults, []);
});

Deno.test("a query that can never match is found", () => {
  const fault = (expr: string, ...texts: string[]): readonly string[] => faultsOf({ where: "", expr, texts });
  const table: readonly (readonly [Query["expr"], RegExp])[] = [
    ["rds_csi_orphan > 0", /no metric rds_csi_orphan/],
    ["rate(rds_csi_tool_seconds[5m])", /no metric rds_csi_tool_seconds/],
    ["rds_csi_orphans_bucket", /no metric/],
    ['rds_csi_orphans{sort="x"}', /no label sort/],
    ['rds_csi_orphans{kind="disk-without-pw"}', /kind is never disk-without-pw/],
    ['rds_csi_orphans{kind!~"no-record|others"}', /kind is never others/],
    ['grpc_server_handled_total{grpc_code="INTERNAL"}', /grpc_code is never INTERNAL/],
    ["sum by (sort) (rds_csi_orphans)", /the label sort/],
    ["1 > 0", /reads no metric/],
    ['ALERTS{alertname="RdsCsiNone"}', /alertname is never RdsCsiNone/],
    ['ALERTS{severity="page"}', /severity is never page/],
  ];
  for (const [expr, expected] of table) assert.match(fault(expr).join("; "), expected, expr);
  assert.deepEqual(fault('rds_csi_orphans{kind="no-record"}', "{{kind}} {{ $labels.instance }}"), []);
  assert.match(fault("rds_csi_orphans", "{{ sort }}").join(), /the label sort/);
  assert.match(fault("rds_csi_orphans", "{{ $labels.sort }}").join(), /the label sort/);
});

Deno.test("the dashboard shows every metric of the driver", () => {
  const shown = new Set(
    chartQueries().filter(({ where }) => where.startsWith("panel")).flatMap(({ expr }) =>
      tableMetricsOf(expr)
    ),
  );
  assert.deepEqual(allMetrics.filter((name) => !shown.has(name)), []);
});

Deno.test("the dashboard queries the chosen data source, in rows without gaps and overlaps", () => {
  const { panels, templating } = chartDashboard();
  assert.deepEqual(templating.list.map(({ name }) => name), ["datasource", "instance"]);
  assert.deepEqual(
    panels.filter(({ type }) => type === "row").map(({ title }) => title),
    [
      "Is something wrong now?",
      "Capacity",
      "Calls",
      "Router",
      "Nodes",
      "What was refused, cut off or restored",
      "Shared directories",
      "Processes",
    ],
  );
  const all = panels as unknown as readonly {
    readonly id: number;
    readonly type: string;
    readonly datasource?: { readonly uid: string };
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  }[];
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
  for (const { type, datasource } of all) {
    if (type !== "row") assert.equal(datasource?.uid, "${datasource}");
  }
  const cells = all.flatMap(({ gridPos: { x, y, w, h } }) => {
    assert.ok(x + w <= 24);
    return Array.from({ length: w * h }, (_, at) => `${x + at % w} ${y + Math.floor(at / w)}`);
  });
  assert.equal(new Set(cells).size, cells.length, "two panels lie on each other");
});
