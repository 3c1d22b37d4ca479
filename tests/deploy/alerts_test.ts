import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { readProjectFile } from "./objects.ts";
import { prometheusMissing as ignore, promtool } from "./prometheus.ts";
import { alertsFile, chartAlerts } from "./queries.ts";

const casesFile = "tests/deploy/alerts.test.yaml";
const page = "docs/reference/alerts.md";

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

Deno.test("every alert has its severity, its problem, and a link to what to do", () => {
  const alerts = chartAlerts();
  assert.ok(alerts.length >= 8);
  assert.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length);
  const headings = readProjectFile(page).matchAll(/^## (.*)$/gm).map(([, title]) => title!).toArray();
  for (const { alert, labels, annotations } of alerts) {
    assert.match(alert, /^RdsCsi[A-Z]/);
    assert.ok(["critical", "warning"].includes(labels["severity"]!), alert);
    assert.deepEqual(Object.keys(annotations).toSorted(), ["description", "runbook", "summary"], alert);
    assert.equal(annotations["runbook"], `${page}#${alert.toLowerCase()}`);
    assert.ok(headings.includes(alert), `${page} says nothing of ${alert}`);
  }
  assert.deepEqual(headings.filter((title) => title.startsWith("RdsCsi")).length, alerts.length);
});

interface Case {
  readonly alert_rule_test?: readonly { readonly alertname: string; readonly exp_alerts: unknown[] }[];
  readonly promql_expr_test?: readonly { readonly expr: string; readonly exp_samples: unknown[] }[];
}

function readCases(): readonly Case[] {
  return (parse(readProjectFile(casesFile)) as { tests: Case[] }).tests;
}

/** Returns the times of a case: an alert, and whether it fires. */
function momentsOf(one: Case): (readonly [alert: string, fires: boolean])[] {
  return [
    ...(one.alert_rule_test ?? []).map(({ alertname, exp_alerts }) =>
      [alertname, exp_alerts.length > 0] as const
    ),
    ...(one.promql_expr_test ?? []).map(({ expr, exp_samples }) =>
      [/^ALERTS\{alertname="(\w+)",alertstate="firing"\}$/.exec(expr)![1]!, exp_samples.length > 0] as const
    ),
  ];
}

Deno.test("every alert has a time at which it fires, and one at which it does not", () => {
  const found = Map.groupBy(readCases().flatMap(momentsOf), ([alert]) => alert);
  assert.deepEqual([...found.keys()].toSorted(), chartAlerts().map(({ alert }) => alert).toSorted());
  for (const [name, moments] of found) {
    assert.deepEqual(new Set(moments.map(([, fires]) => fires)), new Set([true, false]), name);
  }
});

Deno.test({
  name: "promtool takes the alerts, and they fire when they should",
  ignore,
  async fn() {
    const rules = await promtool("check", "rules", pathOf(`deploy/${alertsFile}`));
    assert.ok(rules.success, rules.output);
    const { success, output } = await promtool("test", "rules", pathOf(casesFile));
    assert.ok(success, output);
  },
});
