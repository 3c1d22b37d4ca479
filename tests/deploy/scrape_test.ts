import assert from "node:assert/strict";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { FakeKubelet } from "../fakes/kubelet.ts";
import { directoryMetrics } from "../../src/telemetry/directory_metrics.ts";
import { volumeIoMetrics } from "../../src/telemetry/volume_io.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import { create, publishRequest, rejectsWith, snapshot } from "../support/controller_calls.ts";
import { freePort, startPart } from "../support/parts.ts";
import type { Stack } from "../support/stack.ts";
import { status } from "@grpc/grpc-js";
import { type Prometheus, prometheusMissing, startPrometheus } from "./prometheus.ts";
import { hardwareMetrics } from "../../src/telemetry/hardware_metrics.ts";
import { chartQueries, type Query, tableMetricsOf } from "./queries.ts";
import { eventually } from "../support/eventually.ts";

/** Metrics that appear only with an event that does not happen here, with that event. */
const later: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.keys(volumeIoMetrics).map((name) => [name, "a volume that is staged with --volume-metrics"]),
  ),
  ALERTS: "an alert that fires, where Prometheus has rules",
  rds_csi_orphans: "an audit, the first of which comes a minute after the start",
  ...Object.fromEntries(
    Object.keys(hardwareMetrics).filter((name) => name !== "rds_csi_hardware_timestamp_seconds")
      .map((name) => [name, "a reading of drives, the first of which comes a minute after the start"]),
  ),
  rds_csi_unwanted_exports_total: "an export that the cluster wants nowhere",
  rds_csi_tool_seconds: "a volume that is staged, which needs root",
  ...Object.fromEntries(
    Object.keys(directoryMetrics).map((name) => [name, "a controller of shared directories"]),
  ),
};

/** Returns a query as Grafana would send it. */
function filled(expr: string): string {
  return expr.replaceAll("$instance", ".*").replaceAll("$__rate_interval", "10s").replaceAll(
    "$__range",
    "1m",
  );
}

/** Whether the query finds something only when something is wrong. */
function isComparison({ where, expr }: Query): boolean {
  return where.startsWith("alert") || / [<>] [0-9e]+$/.test(expr);
}

/** Whether the query reads a metric that appears only with a later event. */
function isOfLater({ expr }: Query): boolean {
  return tableMetricsOf(expr).some((name) => Object.hasOwn(later, name));
}

/** Makes calls of every kind: successful and failed ones, volumes, a holder, a migration, a snapshot. */
async function live(stack: Stack): Promise<void> {
  const { controller, identity } = stack.clients;
  await identity.call("Probe", {});
  const volume = await create(stack, "one");
  await controller.call("ControllerPublishVolume", publishRequest(volume));
  const second = controller.call("ControllerPublishVolume", publishRequest(volume, "node-2"));
  await rejectsWith(status.FAILED_PRECONDITION, second);
  await snapshot(stack, "s", volume);
  await controller.call("GetCapacity", {});
}

/** Starts a node that has registered itself with a kubelet, with its metrics at this address. */
async function startNode(folder: string, address: string): Promise<AsyncDisposable> {
  const kubelet = new FakeKubelet(`${folder}/kubelet`);
  await Deno.mkdir(`${folder}/kubelet/plugins`);
  const endpoint = `unix://${folder}/kubelet/plugins/csi.sock`;
  const node = startPart("sources", "serve", folder, [
    ...["--mode=node", "--node-id=node-1", "--endpoint", endpoint, "--metrics-address", address],
    ...["--connector=loop", "--loop-backing", `${folder}/router`, "--state-dir", `${folder}/state`],
    ...["--register", "--kubelet-path", `${folder}/kubelet`],
  ]);
  await node.ready(async () => (await kubelet.check()).length > 0);
  const clients = dial(loadCsi(), endpoint, systemClock);
  await clients.node.call("NodeGetInfo", {}).finally(() => clients.close());
  return {
    async [Symbol.asyncDispose]() {
      assert.deepEqual(await node.stop(), []);
    },
  };
}

Deno.test({
  name: "a real Prometheus takes every query of the dashboard and of the alerts, and finds what there is",
  ignore: prometheusMissing,
  async fn() {
    const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
    await using made = new AsyncDisposableStack();
    made.defer(() => Deno.remove(folder, { recursive: true }));
    const { stack } = made.use(await startClusterStack());
    const nodeAddress = `127.0.0.1:${freePort()}`;
    made.use(await startNode(folder, nodeAddress));
    const { host } = new URL(stack.driver.metricsUrl!);
    const prometheus = made.use(await startPrometheus(folder, [host, nodeAddress]));
    await eventually(async () => (await prometheus.query("up == 1")).length === 2);
    await live(stack);
    await findsAll(prometheus, chartQueries().filter((query) => !isComparison(query)));
    // Prometheus accepts them, whatever they find.
    for (const query of chartQueries()) {
      if (isComparison(query) || isOfLater(query)) await prometheus.query(filled(query.expr));
    }
    await hasAll(prometheus);
    await assert.rejects(prometheus.query("rate(rds_csi_orphans)"), /expected type range vector/);
  },
});

/** Asserts that every query finds something, except for events that have not happened yet. A rate needs two scrapes. */
async function findsAll(prometheus: Prometheus, queries: readonly Query[]): Promise<void> {
  let waiting = queries.filter((query) => !isOfLater(query));
  assert.ok(waiting.length >= 35, `${waiting.length} queries`);
  const reading = async () => {
    const empty: Query[] = [];
    for (const query of waiting) {
      if ((await prometheus.query(filled(query.expr))).length === 0) empty.push(query);
    }
    waiting = empty;
    return empty.length === 0;
  };
  await eventually(reading).catch(() => assert.deepEqual(waiting, [], "these find nothing"));
}

/** Asserts that every metric of the queries was scraped, except the later ones, and that those are really missing. */
async function hasAll(prometheus: Prometheus): Promise<void> {
  const read = new Set(chartQueries().flatMap(({ expr }) => tableMetricsOf(expr)));
  const missing: string[] = [];
  for (const name of read) {
    const series = await prometheus.query(`{__name__=~"${name}(_bucket)?",job="rds-csi"}`);
    if (series.length === 0) missing.push(name);
  }
  assert.deepEqual(missing.toSorted(), Object.keys(later).toSorted());
}
