import assert from "node:assert/strict";
import { aPersistentVolume, startKube, testDriver } from "../../tests/fakes/kube_client.ts";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { systemClock } from "../host/clock.ts";
import { ApiError } from "./api.ts";
import { volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";

const { signal } = new AbortController();

Deno.test("a list reuses unchanged volumes, and returns all others in their present state", async () => {
  await using kube = await startKube();
  const { api } = kube;
  const attributes = { nvmeAddress: "10.0.0.1" };
  for (const id of ["a", "b", "c", "d"]) api.put(volumesPath, aPersistentVolume(id, { attributes }));
  const volumes = new PersistentVolumes({ api: kube.client, clock: systemClock, driverName: testDriver });
  await volumes.list(signal);
  const before = new Map(volumes.all.map((volume) => [volume.volumeId, volume]));
  const changed = { "csi.rds.srvlab.io/attached-node": "node-1" };
  api.put(volumesPath, aPersistentVolume("b", { attributes, annotations: changed }));
  const { uid } = api.get(volumesPath, "pv-a")!.metadata;
  const anew = aPersistentVolume("c", { attributes: { nvmeAddress: "10.0.0.2" } });
  // As from another cluster's data: the version is the same, the object is not.
  const version = api.get(volumesPath, "pv-c")!.metadata.resourceVersion!;
  api.put(volumesPath, { ...anew, metadata: { ...anew.metadata, uid: "another" } }).metadata.resourceVersion =
    version;
  api.delete(volumesPath, "pv-d");
  await volumes.list(signal);
  assert.deepEqual(volumes.all.map(({ volumeId }) => volumeId), ["a", "b", "c"]);
  assert.equal(volumes.known("a"), before.get("a"));
  assert.equal(volumes.known("a")!.uid, uid);
  assert.deepEqual(volumes.known("b")!.annotations, changed);
  assert.equal(volumes.known("c")!.uid, "another");
  assert.deepEqual(volumes.known("c")!.attributes, { nvmeAddress: "10.0.0.2" });
  assert.equal(volumes.known("d"), undefined);
});

Deno.test("volumes with the same volume context share it", async () => {
  await using kube = await startKube();
  const contexts: Record<string, string>[] = [{ fsckMode: "off", backend: "a" }, {
    fsckMode: "off",
    backend: "a",
  }, { backend: "a" }];
  contexts.forEach((attributes, index) =>
    kube.api.put(volumesPath, aPersistentVolume(`v${index}`, { attributes }))
  );
  const volumes = new PersistentVolumes({ api: kube.client, clock: systemClock, driverName: testDriver });
  await volumes.list(signal);
  const [first, second, third] = volumes.all.map(({ attributes }) => attributes);
  assert.equal(first, second);
  assert.deepEqual([first, third], [contexts[0], contexts[2]]);
});

Deno.test("a call that ends does not end the list that another waits for", async () => {
  await using kube = await startKube();
  kube.api.put(volumesPath, aPersistentVolume("a"));
  const volumes = new PersistentVolumes({ api: kube.client, clock: systemClock, driverName: testDriver });
  const over = new AbortController();
  const first = volumes.list(over.signal);
  const second = volumes.list(signal);
  over.abort(new Error("it ends"));
  await assert.rejects(first);
  await second;
  assert.equal(volumes.all.length, 1);
});

Deno.test("namesakes() reads again only objects that share a volume, and keeps those that cannot be read", async () => {
  await using kube = await startKube();
  const { api } = kube;
  const again = aPersistentVolume("a");
  for (
    const object of [
      aPersistentVolume("a"),
      { ...again, metadata: { name: "again" } },
      aPersistentVolume("b"),
    ]
  ) {
    api.put(volumesPath, object);
  }
  const volumes = new PersistentVolumes({ api: kube.client, clock: systemClock, driverName: testDriver });
  const names = async (id: string) =>
    (await volumes.namesakes(id, signal)).map(({ name }) => name).toSorted();
  await volumes.list(signal);
  api.requests.length = 0;
  assert.deepEqual(await names("b"), ["pv-b"]);
  assert.equal(api.requests.length, 0);
  assert.deepEqual(await names("a"), ["again", "pv-a"]);
  api.faults.push({ match: /persistentvolumes/, status: 500 });
  assert.deepEqual(await names("a"), ["again", "pv-a"]);
  api.faults.length = 0;
  api.delete(volumesPath, "again");
  assert.deepEqual(await names("a"), ["pv-a"]);
});

Deno.test("namesakes() knows objects that were made since the last list, and is not content with none at all", async () => {
  await using kube = await startKube();
  const { api } = kube;
  const clock = new FakeClock();
  const another = aPersistentVolume("a");
  api.put(volumesPath, aPersistentVolume("a"));
  const volumes = new PersistentVolumes({ api: kube.client, clock, driverName: testDriver });
  const names = async () => (await volumes.namesakes("a", signal)).map(({ name }) => name).toSorted();
  const fault = { match: /persistentvolumes/, status: 500 };
  api.faults.push(fault);
  await assert.rejects(names(), (error) => error instanceof ApiError);
  api.faults.length = 0;
  assert.deepEqual(await names(), ["pv-a"], "of a process that has listed nothing before");
  api.put(volumesPath, { ...another, metadata: { name: "again" } });
  await clock.advance(5_000);
  api.faults.push(fault);
  assert.deepEqual(await names(), ["pv-a"]);
  api.faults.length = 0;
  assert.deepEqual(await names(), ["again", "pv-a"]);
});
