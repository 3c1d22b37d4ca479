import assert from "node:assert/strict";
import { systemClock } from "../src/host/clock.ts";
import { dial } from "../src/csi/client.ts";
import { loadCsi } from "../src/csi/proto.ts";
import { metricTables } from "../src/telemetry/metric_tables.ts";
import { freePort, startPart } from "./support/parts.ts";
import { startStack } from "./support/stack.ts";

async function scrape(url: string): Promise<string[]> {
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 200);
  return (await response.text()).split("\n");
}

const handled = (service: string, method: string, code: string) =>
  `grpc_server_handled_total{grpc_type="unary",grpc_service="csi.v1.${service}",grpc_method="${method}",` +
  `grpc_code="${code}"}`;

Deno.test("a controller counts its calls by method and code, and a scrape sends the router nothing", async () => {
  await using stack = await startStack();
  const { clients, driver } = stack;
  const url = driver.metricsUrl ?? assert.fail("no metrics are served");
  await clients.identity.call("Probe", {});
  await assert.rejects(clients.controller.call("DeleteVolume", { volumeId: "" }));
  const { execs } = await stack.count();
  for (let i = 0; i < 3; i++) {
    const lines = await scrape(url);
    assert.ok(lines.includes(`${handled("Identity", "Probe", "OK")} 1`));
    assert.ok(lines.includes(`${handled("Controller", "DeleteVolume", "InvalidArgument")} 1`));
    assert.equal(lines.some((line) => line.startsWith("rds_csi_staged_volumes")), false);
  }
  assert.equal((await stack.count()).execs, execs);
});

Deno.test("a controller whose login the router refuses is alive and not ready", async () => {
  await using stack = await startStack({ simulator: { users: [] } });
  const url = stack.driver.metricsUrl ?? assert.fail("no metrics are served");
  const status = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    await response.text();
    return response.status;
  };
  assert.deepEqual([await status("/readyz"), await status("/healthz")], [503, 200]);
  const stop = new AbortController();
  const seeking = stack.driver.seekRouter(stop.signal);
  await new Promise((resolve) => setTimeout(resolve, 300));
  stop.abort();
  await seeking;
  assert.deepEqual([await status("/readyz"), await status("/healthz")], [503, 200], "the login was refused");
});

Deno.test("a controller asks its router by itself, and is ready by its answer", async () => {
  await using stack = await startStack();
  const url = stack.driver.metricsUrl ?? assert.fail("no metrics are served");
  const readiness = async () => await (await fetch(`${url}/readyz`)).text();
  assert.match(await readiness(), /^the router has not answered yet/);
  await stack.driver.seekRouter(new AbortController().signal);
  assert.equal(await readiness(), "ok\n");
});

Deno.test("a driver whose socket somebody removed says that a restart would help", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    const socket = `${folder}/csi.sock`;
    await using stack = await startStack({ flags: ["--endpoint", `unix://${socket}`] });
    const health = async () => await (await fetch(`${stack.driver.metricsUrl}/healthz`)).text();
    assert.equal(await health(), "ok\n");
    await Deno.remove(socket);
    assert.match(await health(), /^the socket that calls come by is gone/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a driver without --metrics-address serves none", async () => {
  await using stack = await startStack({ flags: ["--metrics-address", ""] });
  assert.equal(stack.driver.metricsUrl, undefined);
  await stack.clients.identity.call("GetPluginInfo", {});
});

Deno.test("a driver whose metrics port is taken serves volumes all the same, and says so", async () => {
  await using stack = await startStack();
  const { host } = new URL(stack.driver.metricsUrl!);
  const { clients, driver } = await stack.another(["--metrics-address", host]);
  assert.equal(driver.metricsUrl, undefined);
  await clients.identity.call("GetPluginInfo", {});
  assert.ok(stack.log.some((line) => line.includes("cannot serve metrics") && /"level":"error"/i.test(line)));
});

Deno.test("a node under its permissions serves every metric of a node, also once it has given up the network", async () => {
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
  const url = `http://127.0.0.1:${freePort()}`;
  const address = `tcp://127.0.0.1:${freePort()}`;
  const node = startPart("sources", "serve", folder, [
    ...["--mode", "node", "--node-id", "node-1", "--endpoint", address, "--metrics-address", url.slice(7)],
    ...["--connector", "loop", "--loop-backing", `${folder}/router`, "--state-dir", `${folder}/state`],
  ]);
  const clients = dial(loadCsi(), address, systemClock);
  try {
    const isHealthy = async () => (await fetch(`${url}/healthz`).then(textOf, () => "")) === "ok\n";
    await node.ready(isHealthy);
    await clients.node.call("NodeGetInfo", {});
    const lines = await scrape(url);
    assert.ok(lines.includes(`${handled("Node", "NodeGetInfo", "OK")} 1`), lines.join("\n"));
    assert.ok(lines.includes("rds_csi_staged_volumes 0"));
    const tables = [metricTables["Calls"], metricTables["Nodes"], metricTables["The process"]];
    for (const name of tables.flatMap((table) => Object.keys(table!))) {
      assert.ok(lines.some((line) => line.startsWith(`# TYPE ${name} `)), name);
    }
    const memory = lines.find((line) => line.startsWith("process_resident_memory_bytes "));
    assert.ok(Number(memory?.split(" ")[1]) > 10_000_000, memory);
  } finally {
    clients.close();
    const problems = await node.stop();
    await Deno.remove(folder, { recursive: true });
    assert.deepEqual(problems, []);
  }
});

function textOf(response: Response): Promise<string> {
  return response.text();
}
