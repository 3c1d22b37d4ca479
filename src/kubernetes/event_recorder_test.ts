import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { aPersistentVolume, startKube, testDriver, until } from "../../tests/fakes/kube_client.ts";
import type { KubeObject } from "../../tests/fakes/kube_api.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import type { ControllerEvent } from "../volume/ports/controller_events.ts";
import { EventRecorder } from "./event_recorder.ts";
import { volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { clusterRules } from "../../tests/support/access_rules.ts";

const onVolume = "/api/v1/namespaces/default/events";
const onClaim = "/api/v1/namespaces/apps/events";
const refused = (message: string, volumeId = "v"): ControllerEvent => ({
  kind: "attach-refused",
  volumeId,
  nodeId: "node-2",
  message,
});

/** A recorder of events, and a cluster with one volume. */
async function startRecorder() {
  const clock = new FakeClock();
  const pair = await startKube();
  pair.api.rules = clusterRules;
  pair.api.put(volumesPath, aPersistentVolume("v"));
  const warnings: string[] = [];
  const recorders: EventRecorder[] = [];
  /** Another recorder on the same cluster, as after a restart. */
  const another = () => {
    const volumes = new PersistentVolumes({ api: pair.client, clock, driverName: testDriver });
    const warn = (message: string) => void warnings.push(message);
    const random = new SeededRandom();
    recorders.push(
      new EventRecorder({ api: pair.client, volumes, clock, random, driverName: testDriver, warn }),
    );
    return recorders.at(-1)!;
  };
  const recorder = another();
  const done = (one = recorder) => until(clock, () => one.pending === 0);
  return {
    ...{ ...pair, clock, warnings, recorder, another, done },
    async [Symbol.asyncDispose]() {
      for (const one of recorders) await one.close();
      await pair[Symbol.asyncDispose]();
    },
  };
}

const counts = (events: readonly KubeObject[]) => events.map((event) => event["count"]);

Deno.test("an event is recorded on the volume's object and on its claim", async () => {
  await using scene = await startRecorder();
  const { api, recorder, done } = scene;
  recorder.occurred(refused("node-1 holds it"));
  await done();
  const [event] = api.all(onVolume);
  assert.equal(event?.["reason"], "AttachRefused");
  assert.equal(event?.["type"], "Warning");
  assert.equal(event?.["message"], "Node node-2 was refused: node-1 holds it");
  assert.equal(event?.["firstTimestamp"], "2026-01-01T00:00:00Z");
  const volume = api.get(volumesPath, "pv-v")!;
  const uid = volume.metadata.uid;
  const involved = { apiVersion: "v1", kind: "PersistentVolume", name: "pv-v", uid };
  assert.deepEqual(event?.["involvedObject"], involved);
  const [onItsClaim] = api.all(onClaim);
  assert.deepEqual(onItsClaim?.["involvedObject"], {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    namespace: "apps",
    name: "claim-v",
    uid: "claim-uid-v",
  });
});

Deno.test("the same event again is counted, and written once a minute at most", async () => {
  await using scene = await startRecorder();
  const { api, clock, recorder, done } = scene;
  for (let i = 0; i < 100; i++) {
    recorder.occurred(refused(`node-1 holds it; try again in ${i} s`));
    await until(clock, () => true);
    await clock.advance(100);
  }
  await until(clock, () => api.all(onVolume).length === 1);
  const before = api.requests.length;
  assert.ok(before <= 4, `${before} requests for a hundred events in 10 s`);
  const begun = clock.now();
  await done();
  assert.ok(clock.now() - begun > 40_000, `${clock.now() - begun} ms`);
  assert.deepEqual(counts(api.all(onVolume)), [100]);
  assert.deepEqual(counts(api.all(onClaim)), [100]);
  assert.match(String(api.all(onVolume)[0]?.["message"]), /try again in 99 s$/);
});

Deno.test("another reason and another volume are other events", async () => {
  await using scene = await startRecorder();
  const { api, recorder, done } = scene;
  api.put(volumesPath, aPersistentVolume("w"));
  recorder.occurred(refused("x"));
  recorder.occurred(refused("y"));
  recorder.occurred(refused("x", "w"));
  for (const nodeIds of [["node-1"], ["node-2"]]) {
    recorder.occurred({ kind: "fenced", volumeId: "v", nodeIds });
  }
  await done();
  assert.equal(api.all(onVolume).length, 5);
});

Deno.test("a controller that restarts goes on counting", async () => {
  await using scene = await startRecorder();
  const { api, recorder, another, done } = scene;
  recorder.occurred(refused("x"));
  await done();
  const next = another();
  next.occurred(refused("x"));
  await done(next);
  assert.deepEqual(counts(api.all(onVolume)), [2]);
  assert.equal(api.all(onVolume).length, 1);
});

Deno.test("a full pool is recorded on the claim that waits for a volume", async () => {
  await using scene = await startRecorder();
  const { api, recorder, done } = scene;
  const about = { namespace: "apps", name: "data", uid: "u" };
  recorder.occurred({ kind: "out-of-space", about, message: "the pool is full" });
  await done();
  assert.deepEqual(api.all(onClaim).map((event) => [event["reason"], event["message"]]), [
    ["OutOfSpace", "the pool is full"],
  ]);
  assert.equal(api.all(onVolume).length, 0);
});

Deno.test("while the API server is away events wait, without many requests", async () => {
  await using scene = await startRecorder();
  const { api, clock, recorder, warnings, done } = scene;
  api.faults.push({ match: /./, status: 500 });
  recorder.occurred(refused("x"));
  recorder.occurred(refused("y"));
  await until(clock, () => clock.now() >= Date.UTC(2026, 0, 1) + 60_000, { stepMs: 500 });
  assert.ok(api.requests.length <= 12, `${api.requests.length} requests in a minute`);
  assert.equal(warnings.length, 1);
  api.faults.length = 0;
  await done();
  assert.equal(api.all(onVolume).length, 2);
});

Deno.test("an event in a namespace that is being deleted is given up", async () => {
  await using scene = await startRecorder();
  const { api, recorder, done } = scene;
  // The API server forbids new objects there; later the namespace is gone.
  for (const status of [403, 404]) {
    api.faults.splice(0, 1, { match: /POST .*apps/, status, times: Infinity });
    recorder.occurred(refused(`x${status}`));
    await done();
  }
  assert.deepEqual(api.all(onVolume).map(({ count }) => count), [1, 1]);
  assert.equal(api.all(onClaim).length, 0);
});

Deno.test("an event that cannot be written keeps no other one waiting", async () => {
  await using scene = await startRecorder();
  const { api, clock, recorder } = scene;
  api.faults.push({ match: /POST .*apps/, status: 500 });
  recorder.occurred(refused("x"));
  recorder.occurred(refused("y", "pvc-other"));
  await until(clock, () => recorder.pending === 1, { limitMs: 60_000 });
  assert.equal(api.all(onVolume).length, 1);
});

Deno.test("no more than a thousand events are kept, and none for longer than half an hour", async () => {
  await using scene = await startRecorder();
  const { api, clock, recorder } = scene;
  api.faults.push({ match: /./, status: 500 });
  for (let i = 0; i < 1_200; i++) recorder.occurred(refused("x", `pvc-${i.toString(36)}`));
  assert.equal(recorder.pending, 1_000);
  await until(clock, () => recorder.pending <= 1, { stepMs: 60_000, limitMs: 2 * 3_600_000 });
});

Deno.test("a message is cut to what the API accepts, at a whole character", async () => {
  await using scene = await startRecorder();
  const { api, recorder, done } = scene;
  recorder.occurred(refused("\x9b" + "ü".repeat(2_000)));
  await done();
  const message = String(api.all(onVolume)[0]?.["message"]);
  assert.ok(new TextEncoder().encode(message).length <= 1_024);
  assert.match(message, /ü\.\.\.$/);
  assert.ok(!message.includes("\x9b"), "nor with control characters");
});
