import assert from "node:assert/strict";
import { partsOf } from "./promql.ts";

const metricsOf = (query: string) => partsOf(query).selectors.map(({ metric }) => metric);

Deno.test("partsOf() finds metrics, and neither functions, operators, labels nor durations", () => {
  const query =
    'sum by (le, method) (rate(a_total{code!="x y"}[5m])) / on (method) group_left b > 3e9 and c offset 5m';
  const { selectors, groupings } = partsOf(query);
  assert.deepEqual(selectors, [
    { metric: "a_total", matchers: [{ label: "code", operator: "!=", value: "x y" }] },
    { metric: "b", matchers: [] },
    { metric: "c", matchers: [] },
  ]);
  assert.deepEqual(groupings, ["le", "method", "method"]);
});

Deno.test("partsOf() takes variables of a dashboard and conditions by expressions", () => {
  const query =
    'histogram_quantile(0.95, sum by (le) (rate(a_bucket{instance=~"$instance",code=~"A|B"}[$__rate_interval])))';
  const { selectors: [only, ...more] } = partsOf(query);
  assert.deepEqual([only?.metric, more], ["a_bucket", []]);
  assert.deepEqual(only?.matchers.map(({ label, value }) => [label, value]), [
    ["instance", "$instance"],
    ["code", "A|B"],
  ]);
});

Deno.test("partsOf() finds metrics without label conditions", () => {
  assert.deepEqual(metricsOf("time() - max(a) > 3 * 3600"), ["a"]);
  assert.deepEqual(metricsOf("sum without (to) (a) > b"), ["a", "b"]);
  assert.deepEqual(metricsOf("(a / b < 0.1 or (a unless b)) and on (instance) c"), ["a", "b", "a", "b", "c"]);
  assert.deepEqual(metricsOf("absent(a)"), ["a"]);
});
