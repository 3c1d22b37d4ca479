import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { startKube, testDriver } from "../../tests/fakes/kube_client.ts";
import { CsiNodes } from "./csi_nodes.ts";
import { machineHash } from "../volume/model/host/machine.ts";
import { nodesPath } from "./objects.ts";
import { clusterRules } from "../../tests/support/access_rules.ts";

const path = "/apis/storage.k8s.io/v1/csinodes";

/** A cluster of nodes, and what is known of them. */
async function startNodes() {
  const pair = await startKube();
  pair.api.rules = clusterRules;
  const clock = new FakeClock();
  const warnings: string[] = [];
  const nodes = new CsiNodes({
    api: pair.client,
    clock,
    driverName: testDriver,
    others: {
      isKnown: (nodeId) => Promise.resolve(nodeId === "by-flag"),
      machineOf: () => Promise.resolve(undefined),
    },
    warn: (message) => warnings.push(message),
  });
  return {
    ...{ api: pair.api, clock, warnings },
    add: (name: string, nodeID: string, driver = testDriver) =>
      pair.api.put(path, { metadata: { name }, spec: { drivers: [{ name: driver, nodeID }] } }),
    isKnown: (nodeId: string) => nodes.isKnown(nodeId, fakeCall(clock)),
    machineOf: (nodeId: string) => nodes.machineOf(nodeId, fakeCall(clock)),
    [Symbol.asyncDispose]: () => pair[Symbol.asyncDispose](),
  };
}

Deno.test("a node is known when this driver is registered there under that id, or a flag names it", async () => {
  await using scene = await startNodes();
  const { api, add, isKnown } = scene;
  add("worker-1", "id-1");
  add("worker-2", "id-2", "another.driver");
  assert.equal(await isKnown("id-1"), true);
  assert.equal(await isKnown("worker-1"), false);
  assert.equal(await isKnown("id-2"), false);
  assert.equal(await isKnown("by-flag"), true);
  assert.equal(api.count(/^GET/), 1);
});

Deno.test("a node that is added later is found, and a removed one is forgotten in time", async () => {
  await using scene = await startNodes();
  const { api, clock, add, isKnown } = scene;
  assert.equal(await isKnown("id-1"), false);
  add("worker-1", "id-1");
  await clock.advance(2_000);
  assert.equal(await isKnown("id-1"), true);
  api.delete(path, "worker-1");
  assert.equal(await isKnown("id-1"), true);
  await clock.advance(5 * 60_000);
  assert.equal(await isKnown("id-1"), false);
});

Deno.test("a hundred calls at once are one list", async () => {
  await using scene = await startNodes();
  const { api, add, isKnown } = scene;
  add("worker-1", "id-1");
  const answers = await Promise.all(Array.from({ length: 100 }, () => isKnown("id-1")));
  assert.ok(answers.every((answer) => answer));
  assert.equal(api.count(/^GET/), 1);
});

Deno.test("without an answer every node counts as known, with a warning", async () => {
  await using scene = await startNodes();
  const { api, warnings, isKnown } = scene;
  api.faults.push({ match: /./, status: 500 });
  assert.equal(await isKnown("id-1"), true);
  assert.deepEqual(warnings, ["cannot ask the cluster for its nodes; assuming that the node exists"]);
});

Deno.test("the machine of a node is read from its Node each time, and is unknown if two share an id", async () => {
  await using scene = await startNodes();
  const { api, add, isKnown, machineOf } = scene;
  const put = (machineID: string) =>
    api.put(nodesPath, {
      metadata: { name: "worker-1" },
      status: { nodeInfo: { machineID, systemUUID: "4C4C" } },
    });
  add("worker-1", "id-1");
  add("worker-2", "id-2");
  add("worker-3", "id-2");
  for (const machineId of ["0a", "0b"]) {
    put(machineId);
    await isKnown("id-1");
    assert.equal(await machineOf("id-1"), machineHash(machineId, "4c4c"));
  }
  assert.equal(await machineOf("id-2"), undefined);
  assert.equal(await machineOf("by-flag"), undefined);
});

Deno.test("the machine of a node is unknown while the API server does not answer, with a warning", async () => {
  await using scene = await startNodes();
  const { api, warnings, add, isKnown, machineOf } = scene;
  add("worker-1", "id-1");
  await isKnown("id-1");
  assert.equal(await machineOf("id-1"), undefined);
  api.rules = clusterRules.filter(({ resources }) => !resources.includes("nodes"));
  assert.equal(await machineOf("id-1"), undefined);
  assert.deepEqual(warnings.length, 2);
  api.rules = clusterRules;
  api.put(nodesPath, { metadata: { name: "worker-1" } });
  assert.equal(await machineOf("id-1"), undefined);
});
