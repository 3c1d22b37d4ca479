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
