import assert from "node:assert/strict";
import { control } from "./support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { Telemetry } from "../src/cli/serve/telemetry.ts";
import { systemClock } from "../src/host/clock.ts";
import { dial } from "../src/csi/server/client.ts";
import { loadCsi } from "../src/csi/server/proto.ts";
import { createLogger } from "../src/telemetry/log.ts";
import { volumeIoMetrics } from "../src/telemetry/volume_io.ts";
import { metricTables } from "../tools/metric_tables.ts";
import { create, gibibyte, publishRequest, rejectsWith, snapshot } from "./support/controller_calls.ts";
import { scaledClock } from "./fakes/scaled_clock.ts";
import { freePort, startPart } from "./support/parts.ts";
import { withoutBackend } from "./support/backend_label.ts";
import { startStack } from "./support/stack.ts";
import { eventually } from "./support/eventually.ts";
import { makeScratch } from "./support/scratch.ts";

async function scrape(url: string): Promise<string[]> {
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 200);
  return withoutBackend(await response.text()).split("\n");
}

const local = { hostname: "127.0.0.1", port: 0 };

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

/** The value of a series; undefined where there is none. */
function valueIn(lines: readonly string[], series: string): number | undefined {
  const line = lines.find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

Deno.test("a controller shows its pools and volumes as it saw them last, and a scrape does not look", async () => {
  await using stack = await startStack();
  const { clients: { controller }, simulator } = stack;
  const url = stack.driver.metricsUrl ?? assert.fail("no metrics are served");
  const at = '{base_path="/storage-pool/metal-csi",pool="storage-pool"}';
  const promised = (to: string) =>
    `rds_csi_pool_promised_bytes{base_path="/storage-pool/metal-csi",pool="storage-pool",to="${to}"}`;
  const ofVolumes = (name: string) => `rds_csi_${name}{base_path="/storage-pool/metal-csi"}`;
  const before = await scrape(url);
  assert.equal(valueIn(before, `rds_csi_pool_size_bytes${at}`), undefined);
  assert.equal(valueIn(before, 'rds_csi_inventory_timestamp_seconds{of="disks"}'), 0);

  const shared = { block: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" as const } };
  const one = await create(stack, "one");
  const two = await create(stack, "two", { volumeCapabilities: [shared] });
  await create(stack, "three");
  // While there is ample room, a create reads no other disk. Counting may come a moment later.
  await controller.call("ListVolumes", {});
  await eventually(async () => valueIn(await scrape(url), ofVolumes("volumes")) === 3);
  await controller.call("ControllerPublishVolume", publishRequest(one));
  for (const node of ["node-1", "node-2"]) {
    await controller.call("ControllerPublishVolume", publishRequest(two, node, shared));
  }
  await snapshot(stack, "s", one);
  await controller.call("ListVolumes", {});
  // A create for which there may be no room looks at everything, also at snapshots.
  const capacityRange = { requiredBytes: String(1n << 50n) };
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "huge", { capacityRange }));
  const { availableCapacity } = await controller.call("GetCapacity", {});
  const { execs } = await stack.count();
  await eventually(async () => valueIn(await scrape(url), promised("snapshots")) === Number(gibibyte));
  const lines = await scrape(url);
  assert.deepEqual(
    ["volumes", "attachments", "migrations"].map((name) => valueIn(lines, ofVolumes(name))),
    [3, 3, 1],
  );
  const sizeBytes = simulator.model.disks.findBySlot("storage-pool")!.sizeBytes;
  assert.equal(valueIn(lines, `rds_csi_pool_mounted${at}`), 1);
  assert.equal(valueIn(lines, `rds_csi_pool_size_bytes${at}`), Number(sizeBytes));
  assert.equal(valueIn(lines, promised("disks")), Number(3n * gibibyte));
  assert.equal(valueIn(lines, promised("snapshots")), Number(gibibyte));
  const free = valueIn(lines, `rds_csi_pool_free_bytes${at}`)!;
  const unfilled = Math.min(free, Number(sizeBytes - 4n * gibibyte)) - Number(availableCapacity);
  assert.ok(unfilled >= 0 && unfilled < 1 << 20, `${unfilled} bytes`);
  for (const  of of["disks", "snapshots"]) {
    const age = Date.now() / 1000 - valueIn(lines, `rds_csi_inventory_timestamp_seconds{of="${of}"}`)!;
    assert.ok(age >= 0 && age < 60, `${age} s`);
  }
  assert.equal(valueIn(lines, "rds_csi_router_connected"), 1);
  assert.equal(valueIn(lines, 'rds_csi_router_commands_total{kind="add",outcome="ended"}'), 3);
  assert.equal(valueIn(lines, 'rds_csi_router_command_seconds_count{kind="add"}'), 3);
  const sent = lines.filter((line) => line.startsWith("rds_csi_router_commands_total{"))
    .map((line) => Number(line.split(" ").at(-1)));
  assert.equal(sent.reduce((sum, each) => sum + each, 0), execs, "each command is counted once");
  for (let i = 0; i < 3; i++) await scrape(url);
  assert.equal((await stack.count()).execs, execs);
});

Deno.test("a controller shows which volume has the label of its pool, and no more once it is changed", async () => {
  await using stack = await startStack();
  const url = stack.driver.metricsUrl ?? assert.fail("no metrics are served");
  const id = await create(stack, "one");
  const where = 'base_path="/storage-pool/metal-csi",pool="storage-pool"';
  for (
    const [written, labels] of [["storage-pool-fs", `${where},volume_id="${id}"`], ["mine", where]] as const
  ) {
    await control(stack.simulator, `PATCH /disks/${id}`, { "fs-label": written });
    await stack.clients.controller.call("ListVolumes", {});
    const shown = async () => (await scrape(url)).filter((line) => line.startsWith("rds_csi_pool_mounted{"));
    await eventually(async () => (await shown())[0] === `rds_csi_pool_mounted{${labels}} 1`);
    assert.equal((await shown()).length, 1);
  }
});

Deno.test("a controller whose router went away shows an open breaker, and a closed one once it is back", async () => {
  await using stack = await startStack();
  const { clients } = stack;
  const { controller } = clients;
  const url = stack.driver.metricsUrl ?? assert.fail("no metrics are served");
  await stack.driver.seekRouter(new AbortController().signal);
  await controller.call("GetCapacity", {});
  const shown = async () => {
    const lines = await scrape(url);
    return ["connected", "breaker_open"].map((name) => valueIn(lines, `rds_csi_router_${name}`));
  };
  assert.deepEqual(await shown(), [1, 0]);
  await control(stack.simulator, "POST /reboot", { downMs: 2500 });
  await assert.rejects(controller.call("GetCapacity", {}));
  assert.deepEqual(await shown(), [0, 1]);
  const readiness = async () => await (await fetch(`${url}/readyz`)).text();
  assert.match(await readiness(), /^calls are refused at once, because of the router default: /);
  await eventually(() =>
    clients.identity.call("Probe", {}).then(({ ready }) => ready?.value === true, () => false)
  );
  assert.deepEqual(await shown(), [1, 0]);
  assert.equal(await readiness(), "ok\n");
});

Deno.test("a controller whose router is frozen says so within 30 s though no call comes, and is alive and ready to be asked", async () => {
  const clock = scaledClock(10);
  await using stack = await startStack({ clock });
  const { clients, simulator } = stack;
  const url = stack.driver.metricsUrl ?? assert.fail("no metrics are served");
  await stack.driver.seekRouter(new AbortController().signal);
  const readiness = async () => await (await fetch(`${url}/readyz`)).text();
  assert.equal(await readiness(), "ok\n");
  await clients.identity.call("Probe", {});
  simulator.faults.arm({ match: "", nth: 1, times: 1000, action: "hang", value: undefined });
  const frozenMs = clock.monotonicMs();
  // As often as the kubelet asks.
  while (await readiness() === "ok\n" && clock.monotonicMs() - frozenMs < 60_000) await clock.sleep(10_000);
  const seconds = (clock.monotonicMs() - frozenMs) / 1000;
  // A clock that is ten times as fast makes every pause of this machine longer.
  assert.ok(seconds < 35, `it took ${seconds} s`);
  await eventually(async () => (await readiness()).startsWith("calls are refused"));
  assert.match(
    await readiness(),
    /router default: it takes connections and has answered no command for 20 s/,
  );
  assert.match(await (await fetch(url)).text(), /has answered no command for 20 s/);
  assert.equal(valueIn(await scrape(url), "rds_csi_router_breaker_open"), 1);
  assert.equal((await fetch(`${url}/healthz`).then((it) => (it.body?.cancel(), it))).status, 200);
  assert.deepEqual(await clients.identity.call("Probe", {}), { ready: { value: true } });
  await assert.rejects(clients.controller.call("GetCapacity", {}), /answered no command for 20 s/);
  simulator.faults.clear();
  await eventually(async () => await readiness() === "ok\n", 20_000);
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
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const socket = `${folder}/csi.sock`;
  await using stack = await startStack({ flags: ["--endpoint", `unix://${socket}`] });
  const health = async () => await (await fetch(`${stack.driver.metricsUrl}/healthz`)).text();
  assert.equal(await health(), "ok\n");
  await Deno.remove(socket);
  assert.match(await health(), /^the CSI socket is gone/);
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
    "--volume-metrics",
  ]);
  const clients = dial(loadCsi(), address, systemClock);
  try {
    const isHealthy = async () => (await fetch(`${url}/healthz`).then(textOf, () => "")) === "ok\n";
    await node.ready(isHealthy);
    await clients.node.call("NodeGetInfo", {});
    const lines = await scrape(url);
    assert.ok(lines.includes(`${handled("Node", "NodeGetInfo", "OK")} 1`), lines.join("\n"));
    assert.ok(lines.includes("rds_csi_staged_volumes 0"));
    const tables = [
      metricTables["Calls"],
      metricTables["Nodes"],
      metricTables["The process"],
      volumeIoMetrics,
    ];
    for (const name of tables.flatMap((table) => Object.keys(table!))) {
      assert.ok(lines.some((line) => line.startsWith(`# TYPE ${name} `)), name);
    }
    const cpu = lines.find((line) => line.startsWith("process_cpu_seconds_total "));
    assert.ok(Number(cpu?.split(" ")[1]) > 0.05, cpu);
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

Deno.test("a node that can reach no volume is alive and not ready, and says why", async () => {
  const facts = {
    driverName: "rds.csi.srvlab.io",
    version: "1",
    roles: ["node" as const],
    nodeId: "node-1",
    routers: {},
  };
  const telemetry = new Telemetry({ metricsAddress: local, statusAddress: undefined }, facts, systemClock);
  let obstacle: string | undefined = "the module nvme_tcp is not loaded";
  telemetry.serve(createLogger({ clock: systemClock, sink: () => {} }), {
    isInPlace: () => Promise.resolve(true),
    hasAnswered: () => true,
    obstacle: () => Promise.resolve(obstacle),
    askAgain: () => 0,
  });
  try {
    const ask = async (path: string) => await (await fetch(`${telemetry.url}${path}`)).text();
    assert.equal(await ask("/readyz"), "the module nvme_tcp is not loaded\n");
    assert.match(await ask("/"), /the module nvme_tcp is not loaded/);
    assert.equal(await ask("/healthz"), "ok\n");
    obstacle = undefined;
    assert.equal(await ask("/readyz"), "ok\n");
  } finally {
    await telemetry.close();
  }
});

Deno.test("a node shows its status page to its own machine, and to others only where it is told to", async () => {
  const other = Object.values(Deno.networkInterfaces()).flat()
    .find(({ family, address }) => family === "IPv4" && !address.startsWith("127."))?.address;
  assert.ok(other, "this machine has an address that others reach");
  const facts = (role: "controller" | "node") => ({
    driverName: "d",
    version: "1",
    roles: [role],
    routers: {},
  });
  const everywhere = { hostname: "0.0.0.0", port: 0 };
  const signs = {
    isInPlace: () => Promise.resolve(true),
    hasAnswered: () => true,
    obstacle: () => Promise.resolve(undefined),
    askAgain: () => 0,
  };
  const ask = async (role: "controller" | "node", isServed: boolean) => {
    const statusAddress = isServed ? { hostname: other, port: freePort() } : undefined;
    const telemetry = new Telemetry({ metricsAddress: everywhere, statusAddress }, facts(role), systemClock);
    telemetry.serve(createLogger({ clock: systemClock, sink: () => {} }), signs);
    const at = (url: string, path: string) =>
      fetch(`${url}${path}`).then((it) => (it.body?.cancel(), it.status));
    const { port } = new URL(telemetry.url!);
    try {
      const [mine, theirs] = [`http://127.0.0.1:${port}`, `http://${other}:${port}`];
      assert.deepEqual([await at(mine, "/metrics"), await at(theirs, "/metrics")], [200, 200]);
      assert.deepEqual([await at(theirs, "/status.json"), await at(mine, "/status.json")], [
        await at(theirs, "/"),
        200,
      ]);
      const elsewhere = isServed ? await at(`http://${other}:${statusAddress!.port}`, "/") : undefined;
      return [await at(mine, "/"), await at(theirs, "/"), elsewhere];
    } finally {
      await telemetry.close();
    }
  };
  assert.deepEqual(await ask("node", false), [200, 403, undefined]);
  assert.deepEqual(await ask("controller", false), [200, 200, undefined]);
  assert.deepEqual(await ask("node", true), [200, 403, 200]);
  assert.deepEqual(await ask("controller", true), [200, 403, 200]);
});
