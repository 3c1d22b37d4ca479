import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { startKube, testDriver, until } from "../../tests/fakes/kube_client.ts";
import { clusterRules, startupTaintRules } from "../../tests/support/access_rules.ts";
import { StartupTaint } from "./startup_taint.ts";

const csiNodes = "/apis/storage.k8s.io/v1/csinodes";
const nodes = "/api/v1/nodes";
const key = "rds.csi.srvlab.io/agent-not-ready";
const own = { key, effect: "NoExecute", timeAdded: "2026-01-01T00:00:00Z" };
const other = { key: "other.example.com/x", value: "v", effect: "NoSchedule", laterField: true };

/** A cluster whose nodes join with the taint. */
async function startNodes() {
  const clock = new FakeClock();
  const pair = await startKube(clock);
  const { api } = pair;
  api.rules = [...clusterRules, ...startupTaintRules];
  /** Reports and warnings, with their node. */
  const said: string[] = [];
  const say = (message: string, { node = "" }: Readonly<Record<string, unknown>>) =>
    void said.push(`${message} ${node}`.trim());
  const taint = new StartupTaint({
    ...{ api: pair.client, clock, driverName: testDriver, key },
    warn: say,
    report: say,
  });
  return {
    ...{ api, clock, taint, said },
    pass: () => taint.pass(new AbortController().signal),
    /** Makes a node as it joins, with its CSINode; returns its uid. */
    join(name: string, { drivers = [testDriver], taints = [own] as readonly unknown[] } = {}): string {
      const { metadata } = api.put(nodes, { metadata: { name }, spec: { podCIDR: "10.0.0.0/24", taints } });
      const ownerReferences = [{ kind: "Node", name, uid: metadata.uid }];
      const spec = { drivers: drivers.map((driver) => ({ name: driver, nodeID: name })) };
      api.put(csiNodes, { metadata: { name, ownerReferences }, spec });
      return metadata.uid!;
    },
    /** The present taints of a node. */
    taintsOf: (name: string) => (api.get(nodes, name)?.["spec"] as { taints?: unknown }).taints,
    [Symbol.asyncDispose]: () => pair[Symbol.asyncDispose](),
  };
}

Deno.test("the taint is removed from a node that lists the driver, and from no other", async () => {
  await using scene = await startNodes();
  const { join, pass, taintsOf, said, api } = scene;
  join("ready");
  join("other-driver", { drivers: ["another.driver"] });
  join("no-driver", { drivers: [] });
  await pass();
  assert.equal(taintsOf("ready"), undefined);
  assert.deepEqual(taintsOf("other-driver"), [own]);
  assert.deepEqual(taintsOf("no-driver"), [own]);
  assert.deepEqual(said, ["removed the start-up taint from a node ready"]);
  assert.deepEqual(api.get(nodes, "ready")?.["spec"], { podCIDR: "10.0.0.0/24" });
});

Deno.test("other taints stay unchanged, whatever they contain, and the own one is removed with every effect", async () => {
  await using scene = await startNodes();
  const { join, pass, taintsOf } = scene;
  join("a", {
    taints: [other, own, { ...own, effect: "NoSchedule" }, { key: `${key}-2`, effect: "NoSchedule" }],
  });
  await pass();
  assert.deepEqual(taintsOf("a"), [other, { key: `${key}-2`, effect: "NoSchedule" }]);
});

Deno.test("a taint that another program adds meanwhile is not lost", async () => {
  await using scene = await startNodes();
  const { join, pass, taintsOf, api } = scene;
  const uid = join("a");
  // The list is out of date when the patch is sent.
  api.faults.push({ match: /^PATCH/, delayMs: 30, times: 1 });
  const passing = pass();
  while (api.count(/^GET \/api\/v1\/nodes$/) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  api.put(nodes, { metadata: { name: "a", uid }, spec: { taints: [own, other] } });
  await passing;
  assert.deepEqual(taintsOf("a"), [other]);
  assert.deepEqual(api.requests.filter(({ method }) => method === "PATCH").map(({ status }) => status), [
    409,
    200,
  ]);
});

Deno.test("a node that takes the name of an earlier one keeps its taint until the driver is there", async () => {
  await using scene = await startNodes();
  const { join, pass, taintsOf, api } = scene;
  join("a");
  // The CSINode of the earlier node is still there.
  api.put(nodes, { metadata: { name: "a", uid: "new-uid" }, spec: { taints: [own] } });
  await pass();
  assert.deepEqual(taintsOf("a"), [own]);
  assert.equal(api.count(/^PATCH/), 0);
  join("a");
  await pass();
  assert.equal(taintsOf("a"), undefined);
});

Deno.test("nodes are not listed while all have been checked", async () => {
  await using scene = await startNodes();
  const { join, pass, taintsOf, api, clock } = scene;
  join("a");
  join("b", { taints: [] });
  join("gone");
  api.delete(nodes, "gone");
  for (let i = 0; i < 3; i++) await pass();
  assert.equal(api.count(/^GET \/api\/v1\/nodes/), 1);
  join("c");
  await pass();
  assert.equal(taintsOf("c"), undefined);
  assert.equal(api.count(/^GET \/api\/v1\/nodes/), 2);
  join("a");
  await pass();
  assert.equal(taintsOf("a"), undefined, "another node of that name");
  const uid = api.get(nodes, "b")!.metadata.uid!;
  api.put(nodes, { metadata: { name: "b", uid }, spec: { taints: [own] } });
  await pass();
  assert.deepEqual(taintsOf("b"), [own], "somebody has put it on again");
  await clock.advance(5 * 60_000);
  await pass();
  assert.equal(taintsOf("b"), undefined);
});

Deno.test("a node that cannot be changed does not delay others, and is tried again", async () => {
  await using scene = await startNodes();
  const { join, pass, taintsOf, said, api } = scene;
  for (const name of ["a", "b", "c"]) join(name);
  api.faults.push({ match: /^PATCH .*\/a$/, status: 500, times: 2 });
  await pass();
  await pass();
  assert.deepEqual([taintsOf("a"), taintsOf("b"), taintsOf("c")], [[own], undefined, undefined]);
  assert.equal(said.filter((line) => /cannot remove/.test(line)).length, 1);
  await pass();
  assert.equal(taintsOf("a"), undefined);
});

Deno.test("without the permission to patch nodes it warns once, and nothing else happens", async () => {
  await using scene = await startNodes();
  const { join, pass, taintsOf, said, api } = scene;
  api.rules = clusterRules;
  join("a");
  for (let i = 0; i < 3; i++) await pass();
  assert.deepEqual(taintsOf("a"), [own]);
  assert.deepEqual(said, ["cannot remove the start-up taint from nodes; retrying"]);
});

Deno.test("run() checks repeatedly until it is ended", async () => {
  await using scene = await startNodes();
  const { join, taint, taintsOf, clock } = scene;
  const stop = new AbortController();
  const running = taint.run(stop.signal);
  join("a", { drivers: [] });
  await until(clock, () => clock.waiting > 0);
  join("a");
  await until(clock, () => taintsOf("a") === undefined);
  stop.abort(new Error("enough"));
  await running;
  assert.equal(clock.waiting, 0);
});
