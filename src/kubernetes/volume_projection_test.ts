import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { aPersistentVolume, startKube, testDriver, until } from "../../tests/fakes/kube_client.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { aHolder, aVolume } from "../../tests/fakes/records.ts";
import type { Attachment } from "../volume/ports/projection.ts";
import { volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { clusterRules } from "../../tests/support/access_rules.ts";
import { AnnotationProjection } from "./volume_projection.ts";

const node = "csi.rds.srvlab.io/attached-node";
const since = "csi.rds.srvlab.io/attach-time";
const readOnly = "csi.rds.srvlab.io/readonly";
const provisioner = { "pv.kubernetes.io/provisioned-by": testDriver };
const heldBy = (...nodes: string[]) => ({ holders: nodes.map((name) => aHolder(name)) });

/** What is shown of volumes in a cluster. */
async function startProjection() {
  const clock = new FakeClock();
  const pair = await startKube();
  pair.api.rules = clusterRules;
  /** The router's answers; none when it is not asked. */
  const truth = new Map<string, Attachment | "unknown" | undefined>();
  const asked: string[] = [];
  const warnings: string[] = [];
  const volumes = new PersistentVolumes({ api: pair.client, clock, driverName: testDriver });
  const projection = new AnnotationProjection({
    api: pair.client,
    volumes,
    clock,
    random: new SeededRandom(),
    warn: (message) => warnings.push(message),
    latest: (id) => {
      asked.push(id);
      return Promise.resolve(truth.get(id));
    },
  });
  return {
    ...{ ...pair, clock, volumes, projection, warnings, truth, asked },
    annotations: (id: string) => pair.api.get(volumesPath, `pv-${id}`)?.metadata.annotations,
    /** Waits until everything is written. */
    done: () => until(clock, () => projection.pending === 0),
    async [Symbol.asyncDispose]() {
      await projection.close();
      await pair[Symbol.asyncDispose]();
    },
  };
}

Deno.test("a volume's object shows who holds it, since when and how, and nothing without a holder", async () => {
  await using scene = await startProjection();
  const { api, projection, annotations, done } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  projection.show("v", heldBy("node-1"));
  await done();
  assert.deepEqual(annotations("v"), {
    ...provisioner,
    [node]: "node-1",
    [since]: "2023-11-14T22:13:20Z",
    [readOnly]: "false",
  });
  projection.show("v", heldBy("node-2", "node-1"));
  await done();
  assert.equal(annotations("v")?.[node], "node-2,node-1", "both nodes of a migration");
  projection.show("v", heldBy());
  await done();
  assert.deepEqual(annotations("v"), provisioner);
});

Deno.test("only the latest of several states is written", async () => {
  await using scene = await startProjection();
  const { api, projection, annotations, done } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  for (const name of ["node-1", "node-2", "node-3"]) projection.show("v", heldBy(name));
  await done();
  assert.equal(annotations("v")?.[node], "node-3");
  assert.equal(api.count(/^PATCH/), 1);
});

Deno.test("annotations that are correct already are not written again", async () => {
  await using scene = await startProjection();
  const { api, projection, done } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  for (let i = 0; i < 3; i++) {
    projection.show("v", heldBy("node-1"));
    await done();
  }
  assert.equal(api.count(/^PATCH/), 1);
});

Deno.test("a slow write is followed by newer states, and never the other way round", async () => {
  await using scene = await startProjection();
  const { api, clock, projection, annotations, done } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  api.faults.push({ match: /^PATCH/, delayMs: 100, times: 1 });
  projection.show("v", heldBy("node-1"));
  await until(clock, () => api.count(/^GET .*pv-v$/) === 1);
  projection.show("v", heldBy("node-2"));
  await done();
  assert.equal(annotations("v")?.[node], "node-2");
  assert.equal(api.count(/^PATCH/), 2);
});

Deno.test("a write that meets a newer object asks the router before it tries again", async () => {
  await using scene = await startProjection();
  const { api, projection, truth, asked, annotations, done } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  api.faults.push({ match: /^PATCH/, status: 409, times: 1 });
  truth.set("v", { nodes: ["node-9"], sinceSeconds: 0, readOnly: true });
  projection.show("v", heldBy("node-1"));
  await done();
  assert.deepEqual(asked, ["v"]);
  assert.equal(annotations("v")?.[node], "node-9");
  assert.equal(annotations("v")?.[readOnly], "true");
});

Deno.test("while the API server is away nothing is lost, and few requests are sent; afterwards the router is asked", async () => {
  await using scene = await startProjection();
  const { api, clock, projection, truth, warnings, annotations, done } = scene;
  for (const id of ["a", "b", "c"]) {
    api.put(volumesPath, aPersistentVolume(id));
    truth.set(id, { nodes: [`now-${id}`], sinceSeconds: 0, readOnly: false });
  }
  api.faults.push({ match: /./, status: 500 });
  for (const id of ["a", "b", "c"]) projection.show(id, heldBy("node-1"));
  for (let i = 0; i < 60; i++) {
    await until(clock, () => false, { limitMs: 1_000, stepMs: 500 }).catch(() => {});
  }
  assert.ok(api.requests.length <= 30, `${api.requests.length} requests in a minute`);
  assert.deepEqual(warnings, ["cannot write the volume's holders to its PersistentVolume; retrying"]);
  api.faults.length = 0;
  const backAt = clock.now();
  await done();
  assert.ok(clock.now() - backAt <= 15_000, `caught up after ${clock.now() - backAt} ms`);
  assert.deepEqual(["a", "b", "c"].map((id) => annotations(id)?.[node]), ["now-a", "now-b", "now-c"]);
});

Deno.test("after the server asked for a pause no request is sent for as long", async () => {
  await using scene = await startProjection();
  const { api, clock, projection, truth, done } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  truth.set("v", undefined);
  api.faults.push({ match: /^GET/, status: 429, retryAfterSeconds: 30, times: 1 });
  const begun = clock.now();
  projection.show("v", heldBy("node-1"));
  await done();
  assert.ok(clock.now() - begun >= 30_000, `${clock.now() - begun} ms`);
});

Deno.test("a thousand volumes cost four requests when their objects are right, and are rate-limited when they are not", async () => {
  await using scene = await startProjection();
  const { api, clock, volumes, projection, annotations, done } = scene;
  const ids = Array.from({ length: 1_000 }, (_, i) => `pvc-${String(i).padStart(4, "0")}`);
  const right = { [node]: "node-1", [since]: "2023-11-14T22:13:20Z", [readOnly]: "false" };
  for (const id of ids) api.put(volumesPath, aPersistentVolume(id, { annotations: right }));
  const holders = [aHolder("node-1")];
  const epoch = { counter: 1, nonce: "00000000" };
  const held = ids.map((id) => aVolume({ holders, epoch }, { id }));
  await volumes.list(new AbortController().signal);
  projection.showAll(projection.beforeRead(), held);
  assert.equal(projection.pending, 0);
  assert.equal(api.requests.length, 4);
  const moved = held.slice(0, 100).map(({ stored }) =>
    aVolume({ holders: [aHolder("node-2")], epoch }, { id: stored.id })
  );
  const begun = clock.now();
  projection.showAll(projection.beforeRead(), moved);
  await done();
  assert.ok(clock.now() - begun >= 3_500, `${clock.now() - begun} ms for 100 of which 20 may go at once`);
  assert.ok(api.maxAtOnce <= 4, String(api.maxAtOnce));
  assert.equal(annotations(ids[99]!)?.[node], "node-2");
  assert.equal(annotations(ids[100]!)?.[node], "node-1");
});

Deno.test("a read does not undo a state that was shown after it had begun", async () => {
  await using scene = await startProjection();
  const { api, volumes, projection, annotations, done } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  await volumes.list(new AbortController().signal);
  const reading = projection.beforeRead();
  projection.show("v", heldBy("node-1"));
  await done();
  projection.showAll(reading, [aVolume({}, { id: "v" })]);
  await done();
  assert.equal(annotations("v")?.[node], "node-1");
});

Deno.test("volumes that a read did not contain stay as they are", async () => {
  await using scene = await startProjection();
  const { api, volumes, projection, annotations, done } = scene;
  api.put(volumesPath, aPersistentVolume("v", { annotations: { [node]: "node-1" } }));
  await volumes.list(new AbortController().signal);
  projection.showAll(projection.beforeRead(), []);
  await done();
  assert.equal(annotations("v")?.[node], "node-1");
});

Deno.test("a volume without an object is given up, and one of another driver or a missing one is not touched", async () => {
  await using scene = await startProjection();
  const { api, projection, warnings, done } = scene;
  const foreign = aPersistentVolume("other");
  (foreign["spec"] as { csi: { driver: string } }).csi.driver = "another.driver";
  api.put(volumesPath, foreign);
  api.put(volumesPath, aPersistentVolume("gone"));
  api.faults.push({ match: /^GET .*pv-gone$/, status: 404 });
  for (const id of ["none", "other", "gone"]) projection.show(id, heldBy("node-1"));
  await done();
  assert.equal(api.count(/^PATCH/), 0);
  assert.deepEqual(warnings, []);
});

Deno.test("close() ends waiting writes, and later states are not written", async () => {
  await using scene = await startProjection();
  const { api, projection } = scene;
  api.put(volumesPath, aPersistentVolume("v"));
  api.faults.push({ match: /./, status: 500 });
  projection.show("v", heldBy("node-1"));
  await projection.close();
  projection.show("v", heldBy("node-1"));
  assert.equal(projection.pending, 0);
});
