import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import type { KubeObject } from "../../tests/fakes/kube_api.ts";
import { type KubePair, startKube, testDriver } from "../../tests/fakes/kube_client.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { ClusterUse } from "./cluster_use.ts";
import { clusterRules } from "./rules.ts";

function aVolume(name: string, spec: Record<string, unknown>, csi: Record<string, unknown> = {}): KubeObject {
  return {
    metadata: { name },
    spec: { ...spec, csi: { driver: testDriver, volumeHandle: `handle-of-${name}`, ...csi } },
  };
}

function anAttachment(volume: string, node: string, over: Record<string, unknown> = {}): KubeObject {
  return {
    metadata: { name: `csi-${volume}-${node}`, creationTimestamp: "2026-01-02T03:04:05Z", ...over },
    spec: { attacher: testDriver, nodeName: node, source: { persistentVolumeName: volume } },
    status: { attached: over["attached"] !== false },
  };
}

async function start(): Promise<KubePair & { use: ClusterUse }> {
  const pair = await startKube();
  pair.api.rules = clusterRules;
  return { ...pair, use: new ClusterUse({ api: pair.client, driverName: testDriver }) };
}

const call = () => fakeCall(new FakeClock());

Deno.test("ClusterUse lists this driver's PersistentVolumes with what a takeover needs", async () => {
  await using pair = await start();
  const spec = { volumeMode: "Block", accessModes: ["ReadWriteMany"] };
  pair.api.put("/api/v1/persistentvolumes", aVolume("a", spec, { volumeAttributes: { nvmePort: "4420" } }));
  const mount = { volumeMode: "Filesystem", accessModes: ["ReadOnlyMany"] };
  pair.api.put("/api/v1/persistentvolumes", aVolume("b", mount, { fsType: "xfs", readOnly: true }));
  pair.api.put("/api/v1/persistentvolumes", aVolume("c", mount, { driver: "another.example.com" }));
  pair.api.put("/api/v1/persistentvolumes", { metadata: { name: "d" }, spec: { nfs: {} } });
  assert.deepEqual([...await pair.use.othersHandles(call())], ["handle-of-c"]);
  assert.deepEqual((await pair.use.volumes(call())).toSorted((a, b) => a.name < b.name ? -1 : 1), [
    {
      name: "a",
      volumeId: "handle-of-a",
      access: "block",
      fsType: "",
      accessModes: ["ReadWriteMany"],
      readOnly: false,
      attributes: { nvmePort: "4420" },
    },
    {
      name: "b",
      volumeId: "handle-of-b",
      access: "mount",
      fsType: "xfs",
      accessModes: ["ReadOnlyMany"],
      readOnly: true,
      attributes: {},
    },
  ]);
});

Deno.test("ClusterUse names the node of an attachment as the attacher does, and leaves others' out", async () => {
  await using pair = await start();
  pair.api.put("/api/v1/persistentvolumes", aVolume("a", {}));
  const csiNodes = "/apis/storage.k8s.io/v1/csinodes";
  const drivers = [{ name: testDriver, nodeID: "id-of-node-1" }, { name: "another", nodeID: "x" }];
  pair.api.put(csiNodes, { metadata: { name: "node-1" }, spec: { drivers } });
  const path = "/apis/storage.k8s.io/v1/volumeattachments";
  const answered = { attached: true, attachmentMetadata: { epoch: "7-0a0b0c0d" } };
  pair.api.put(path, { ...anAttachment("a", "node-1"), status: answered });
  pair.api.put(
    path,
    anAttachment("a", "gone", { annotations: { "csi.alpha.kubernetes.io/node-id": "id-of-gone" } }),
  );
  pair.api.put(path, { ...anAttachment("a", "unknown"), status: { attached: false } });
  pair.api.put(path, anAttachment("nobody's", "node-1"));
  const other = anAttachment("a", "node-9");
  pair.api.put(path, { ...other, spec: { ...other["spec"] as object, attacher: "another" } });
  const found = await pair.use.attachments(call());
  const sinceSeconds = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000;
  assert.deepEqual(found.toSorted((a, b) => a.nodeId < b.nodeId ? -1 : 1), [
    { volumeId: "handle-of-a", nodeId: "", attached: false, sinceSeconds, epochCounter: 0 },
    { volumeId: "handle-of-a", nodeId: "id-of-gone", attached: true, sinceSeconds, epochCounter: 0 },
    { volumeId: "handle-of-a", nodeId: "id-of-node-1", attached: true, sinceSeconds, epochCounter: 7 },
  ]);
});

const attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments";

Deno.test("ClusterUse names this driver's attachments whose PersistentVolume is gone, and no others", async () => {
  await using pair = await start();
  pair.api.put("/api/v1/persistentvolumes", aVolume("a", {}));
  pair.api.put(attachmentsPath, anAttachment("a", "node-1"));
  assert.deepEqual(await pair.use.strayAttachments(call()), []);
  pair.api.put(attachmentsPath, anAttachment("gone", "node-2"));
  const other = anAttachment("gone-too", "node-3");
  pair.api.put(attachmentsPath, { ...other, spec: { ...other["spec"] as object, attacher: "another" } });
  const inline = anAttachment("inline", "node-4");
  pair.api.put(attachmentsPath, {
    ...inline,
    spec: { ...inline["spec"] as object, source: { inlineVolumeSpec: {} } },
  });
  const sinceSeconds = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000;
  assert.deepEqual(await pair.use.strayAttachments(call()), [
    { name: "csi-gone-node-2", volumeName: "gone", nodeName: "node-2", sinceSeconds },
  ]);
  assert.deepEqual((await pair.use.attachments(call())).map(({ volumeId }) => volumeId), ["handle-of-a"]);
});

Deno.test("ClusterUse takes no attachment for one without its PersistentVolume that goes away with it", async () => {
  const list = (items: unknown[]) => ({ kind: "List", metadata: {}, items });
  const answers = [list([anAttachment("gone", "node-1")]), list([]), list([])];
  const api = { request: <T>() => Promise.resolve(answers.shift() as T) };
  const use = new ClusterUse({ api, driverName: testDriver });
  assert.deepEqual(await use.strayAttachments(call()), []);
  assert.equal(answers.length, 0);
});

Deno.test("ClusterUse is unavailable when a list cannot be read whole", async () => {
  await using pair = await start();
  pair.api.faults.push({ match: /volumeattachments/, status: 500 });
  assert.deepEqual(await pair.use.volumes(call()), []);
  await assert.rejects(pair.use.attachments(call()), refusal("unavailable", /500/));
});

Deno.test("ClusterUse tells whether attachments tell who has a volume", async () => {
  await using pair = await start();
  await pair.use.assertAttachmentsTell(call());
  const spec = { attachRequired: false };
  pair.api.put("/apis/storage.k8s.io/v1/csidrivers", { metadata: { name: testDriver }, spec });
  await assert.rejects(pair.use.assertAttachmentsTell(call()), refusal("precondition", /attachRequired/));
  pair.api.rules = [];
  await assert.rejects(pair.use.assertAttachmentsTell(call()), refusal("unavailable", /403/));
});

Deno.test("ClusterUse takes no answer that is no list for an empty one", async () => {
  for (const answer of [{}, { kind: "Status", status: "Success" }, { items: [] }]) {
    const api = { request: <T>() => Promise.resolve(answer as T) };
    const use = new ClusterUse({ api, driverName: testDriver });
    await assert.rejects(use.volumes(call()), refusal("unavailable", /no list/));
    await assert.rejects(use.attachments(call()), refusal("unavailable", /no list/));
  }
});
