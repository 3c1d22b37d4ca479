import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { readProjectFile } from "./objects.ts";
import { prometheusMissing as ignore, promtool } from "./prometheus.ts";
import { alertsFile, chartAlerts } from "./queries.ts";

const cases = "tests/deploy/alerts.test.yaml";
const page = "docs/reference/alerts.md";

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

Deno.test("every alert says how bad it is, what is the matter, and where to read what to do", () => {
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

/** Moments of the cases, by the alert that they look at: whether it fires there. */
function moments(): Map<string, boolean[]> {
  interface Case {
    readonly alert_rule_test?: readonly { readonly alertname: string; readonly exp_alerts: unknown[] }[];
    readonly promql_expr_test?: readonly { readonly expr: string; readonly exp_samples: unknown[] }[];
  }
  const found = new Map<string, boolean[]>();
  for (const one of (parse(readProjectFile(cases)) as { tests: Case[] }).tests) {
    const asked = [
      ...(one.alert_rule_test ?? []).map(({ alertname, exp_alerts }) => [alertname, exp_alerts] as const),
      ...(one.promql_expr_test ?? []).map(({ expr, exp_samples }) =>
        [/^ALERTS\{alertname="(\w+)",alertstate="firing"\}$/.exec(expr)![1]!, exp_samples] as const
      ),
    ];
    for (const [name, expected] of asked) {
      found.set(name, [...found.get(name) ?? [], expected.length > 0]);
    }
  }
  return found;
}

Deno.test("of every alert there is a moment in which it fires, and one in which it does not", () => {
  const found = moments();
  assert.deepEqual([...found.keys()].toSorted(), chartAlerts().map(({ alert }) => alert).toSorted());
  for (const [name, outcomes] of found) assert.deepEqual(new Set(outcomes), new Set([true, false]), name);
});

Deno.test({
  name: "promtool takes the alerts, and they fire when they should",
  ignore,
  async fn() {
    const rules = await promtool("check", "rules", pathOf(`deploy/${alertsFile}`));
    assert.ok(rules.success, rules.output);
    const { success, output } = await promtool("test", "rules", pathOf(cases));
    assert.ok(success, output);
  },
});

Deno.test({
  name: "an alert on a metric of another name does not go unnoticed",
  ignore,
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
    try {
      const rules = readProjectFile(`deploy/${alertsFile}`);
      for (const metric of new Set(rules.match(/\b(?:rds_csi|grpc)_[a-z_]+(?=[{)[ ])/g))) {
        await Deno.writeTextFile(`${folder}/rules.yaml`, rules.replaceAll(metric, `${metric}x`));
        const other = readProjectFile(cases).replace(/- .*rds-csi\.yaml$/m, "- rules.yaml");
        await Deno.writeTextFile(`${folder}/cases.yaml`, other);
        const { success, output } = await promtool("test", "rules", `${folder}/cases.yaml`);
        assert.equal(success, false, metric);
        assert.match(output, /exp:/, output);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
