import assert from "node:assert/strict";
import { parse } from "yaml";
import { GRPC_CODES } from "../../src/csi/server/grpc_status.ts";
import { GrpcMetrics } from "../../src/telemetry/driver_metrics.ts";
import { metricTables } from "../../tools/metric_tables.ts";
import { MetricRegistry } from "../../src/telemetry/metrics.ts";
import { hardwareReasons } from "../../src/volume/model/health/hardware.ts";
import { auditKinds } from "../../src/volume/model/audit_kinds.ts";
import { readDeployFile } from "./objects.ts";
import { partsOf, type Selector } from "./promql.ts";

/** An alert, as in its file. */
export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The path of the alerts in deploy/. */
export const alertsFile = "chart/alerts/rds-csi.yaml";

/** Returns the alerts of the chart. */
export function chartAlerts(): readonly Alert[] {
  const { groups } = parse(readDeployFile(alertsFile)) as { groups: { rules: Alert[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** The fields of the dashboard that the tests read. */
export interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { readonly query: string } }[];
  };
}

/** Returns the dashboard of the chart. */
export function chartDashboard(): Dashboard {
  return JSON.parse(readDeployFile("chart/dashboards/rds-csi.json"));
}

/** A query, and where it is used. */
export interface Query {
  readonly where: string;
  readonly expr: string;
  /** Texts beside it that name labels: a legend, or the texts of an alert. */
  readonly texts: readonly string[];
}

/** Returns every query of the dashboard and of the alerts. */
export function chartQueries(): readonly Query[] {
  const panels = chartDashboard().panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ where: `panel ${title}`, expr, texts: [legendFormat] }))
  );
  const alerts = chartAlerts().map(({ alert, expr, annotations }) => ({
    where: `alert ${alert}`,
    expr,
    texts: Object.values(annotations),
  }));
  return [...panels, ...alerts];
}

/** Labels that Prometheus adds to every scraped series; the last two only in a cluster. */
const targetLabels = ["instance", "job", "pod", "namespace"];

const tables = Object.assign({}, ...Object.values(metricTables)) as typeof metricTables[string];

/** The possible values of labels, where a query may select some of them. */
const labelValues: Readonly<Record<string, readonly string[]>> = {
  grpc_code: grpcCodes(),
  grpc_service: ["Controller", "Identity", "Node", "GroupController"].map((name) => `csi.v1.${name}`),
  kind: Object.keys(auditKinds),
  of: ["disks", "snapshots"],
  reason: hardwareReasons,
  // Of a pool whose label is its own.
  volume_id: [""],
  alertname: chartAlerts().map(({ alert }) => alert),
  alertstate: ["pending", "firing"],
  severity: [...new Set(chartAlerts().map(({ labels }) => labels["severity"]!))],
};

function grpcCodes(): string[] {
  const registry = new MetricRegistry();
  const metrics = new GrpcMetrics(registry);
  for (const code of Object.keys(GRPC_CODES)) {
    metrics.count({ path: "/csi.v1.Node/Call", code, durationMs: 0 });
  }
  return registry.expose().matchAll(/grpc_code="([^"]+)"/g).map(([, code]) => code!).toArray();
}

/** Prometheus's own metric: a series for each pending or firing alert, with the labels of the series behind it. */
const alertSeries = "ALERTS";

/** Returns a metric's name in the tables, and the labels that a query may use. */
function infoOf(metric: string): { readonly name: string; readonly labels: readonly string[] } | undefined {
  if (metric === alertSeries) {
    return { name: metric, labels: ["alertname", "alertstate", "severity", "backend"] };
  }
  if (Object.hasOwn(tables, metric)) {
    return tables[metric]!.type === "histogram"
      ? undefined
      : { name: metric, labels: tables[metric]!.labels };
  }
  const [, name = "", part] = /^(.*)_(bucket|sum|count)$/.exec(metric) ?? [];
  if (!Object.hasOwn(tables, name) || tables[name]!.type !== "histogram") return undefined;
  return { name, labels: part === "bucket" ? [...tables[name]!.labels, "le"] : tables[name]!.labels };
}

/**
 * Returns the problems of a query: everything that makes it impossible to match, for the driver's metrics.
 *
 * It does not check comparisons; each alert's own tests show that it can fire.
 */
export function faultsOf({ expr, texts }: Query): readonly string[] {
  const { selectors, groupings } = partsOf(expr);
  const faults = selectors.length === 0 ? ["it reads no metric"] : selectors.flatMap(faultsOfSelector);
  const known = new Set([
    ...targetLabels,
    ...selectors.flatMap(({ metric }) => infoOf(metric)?.labels ?? []),
  ]);
  const reported = texts.flatMap((text) =>
    text.matchAll(/\{\{\s*([a-z_]+)\s*\}\}|\$labels\.([a-z_]+)/g).map(([, legend, label]) => legend ?? label!)
      .filter((label) => label !== "end" && label !== "else").toArray()
  );
  for (const label of [...groupings, ...reported]) {
    if (!known.has(label)) faults.push(`none of its metrics has the label ${label}`);
  }
  return faults;
}

function faultsOfSelector({ metric, matchers }: Selector): string[] {
  const info = infoOf(metric);
  if (info === undefined) return [`there is no metric ${metric}`];
  return matchers.flatMap(({ label, operator, value }) => {
    if (targetLabels.includes(label)) return [];
    if (!info.labels.includes(label)) return [`${metric} has no label ${label}`];
    const values = labelValues[label];
    if (values === undefined) return [`it is not known which values ${label} can have`];
    // OK stands for all calls that did not fail. A value that is not a regular expression is one value.
    const wanted = operator.endsWith("~") ? value.split("|") : [value];
    return wanted.filter((one) => !values.some((each) => new RegExp(`^(?:${one})$`).test(each)))
      .map((one) => `${label} is never ${one}`);
  });
}

/** Returns the metrics that a query reads, under their names in the driver's tables. */
export function tableMetricsOf(expr: string): readonly string[] {
  return partsOf(expr).selectors.map(({ metric }) =>
    infoOf(metric)?.name ?? assert.fail(`${metric} in ${expr}`)
  );
}

/** Every metric of the driver. */
export const allMetrics: readonly string[] = Object.keys(tables);
