import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { startKube, testDriver } from "../../tests/fakes/kube_client.ts";
import { CsiNodes } from "./csi_nodes.ts";
import { machineHash } from "../volume/model/host/machine.ts";
import { nodesPath } from "./objects.ts";
import { clusterRules } from "../../tests/support/access_rules.ts";

const path = "/apis/storage.k8s.io/v1/csinodes";

async function withNodes(
  work: (scene: {
    readonly api: Awaited<ReturnType<typeof startKube>>["api"];
    readonly clock: FakeClock;
    readonly warnings: string[];
    add(name: string, nodeID: string, driver?: string): void;
    isKnown(nodeId: string): Promise<boolean>;
    machineOf(nodeId: string): Promise<string | undefined>;
  }) => Promise<void>,
): Promise<void> {
  await using pair = await startKube();
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
  await work({
    api: pair.api,
    clock,
    warnings,
    add: (name, nodeID, driver = testDriver) =>
      void pair.api.put(path, { metadata: { name }, spec: { drivers: [{ name: driver, nodeID }] } }),
    isKnown: (nodeId) => nodes.isKnown(nodeId, fakeCall(clock)),
    machineOf: (nodeId) => nodes.machineOf(nodeId, fakeCall(clock)),
  });
}

Deno.test("a node is known when this driver is registered there under that id, or a flag names it", async () => {
  await withNodes(async ({ api, add, isKnown }) => {
    add("worker-1", "id-1");
    add("worker-2", "id-2", "another.driver");
    assert.equal(await isKnown("id-1"), true);
    assert.equal(await isKnown("worker-1"), false);
    assert.equal(await isKnown("id-2"), false);
    assert.equal(await isKnown("by-flag"), true);
    assert.equal(api.count(/^GET/), 1);
  });
});

Deno.test("a node that is added later is found, and a removed one is forgotten in time", async () => {
  await withNodes(async ({ api, clock, add, isKnown }) => {
    assert.equal(await isKnown("id-1"), false);
    add("worker-1", "id-1");
    await clock.advance(2_000);
    assert.equal(await isKnown("id-1"), true);
    api.delete(path, "worker-1");
    assert.equal(await isKnown("id-1"), true);
    await clock.advance(5 * 60_000);
    assert.equal(await isKnown("id-1"), false);
  });
});

Deno.test("a hundred calls at once are one list", async () => {
  await withNodes(async ({ api, add, isKnown }) => {
    add("worker-1", "id-1");
    const answers = await Promise.all(Array.from({ length: 100 }, () => isKnown("id-1")));
    assert.ok(answers.every((answer) => answer));
    assert.equal(api.count(/^GET/), 1);
  });
});

Deno.test("without an answer every node counts as known, with a warning", async () => {
  await withNodes(async ({ api, warnings, isKnown }) => {
    api.faults.push({ match: /./, status: 500 });
    assert.equal(await isKnown("id-1"), true);
    assert.deepEqual(warnings, ["cannot ask the cluster for its nodes; assuming that the node exists"]);
  });
});

Deno.test("the machine of a node is read from its Node each time, and is unknown if two share an id", async () => {
  await withNodes(async ({ api, add, isKnown, machineOf }) => {
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
});

Deno.test("the machine of a node is unknown while the API server does not answer, with a warning", async () => {
  await withNodes(async ({ api, warnings, add, isKnown, machineOf }) => {
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
});
