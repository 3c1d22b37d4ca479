import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import type { KubeObject } from "../../tests/fakes/kube_api.ts";
import {
  aPersistentVolume,
  aVolumeAttachment,
  type KubePair,
  startKube,
  testDriver,
} from "../../tests/fakes/kube_client.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { KubernetesClusterView } from "./cluster_view.ts";
import type { KubernetesApi } from "./api.ts";
import { attachmentsPath, csiNodesPath, snapshotContentsPath, volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { clusterRules } from "../../tests/support/access_rules.ts";

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

function viewOf(api: KubernetesApi): KubernetesClusterView {
  const options = { api, clock: new FakeClock(), driverName: testDriver };
  return new KubernetesClusterView({ ...options, lists: api, volumes: new PersistentVolumes(options) });
}

async function start(): Promise<KubePair & { use: KubernetesClusterView }> {
  const pair = await startKube();
  pair.api.rules = clusterRules;
  return { ...pair, use: viewOf(pair.client) };
}

const call = () => fakeCall(new FakeClock());

Deno.test("KubernetesClusterView lists this driver's PersistentVolumes with what a migration needs", async () => {
  await using pair = await start();
  const spec = { volumeMode: "Block", accessModes: ["ReadWriteMany"] };
  pair.api.put(volumesPath, aVolume("a", spec, { volumeAttributes: { nvmePort: "4420" } }));
  const mount = { volumeMode: "Filesystem", accessModes: ["ReadOnlyMany"] };
  pair.api.put(volumesPath, aVolume("b", mount, { fsType: "xfs", readOnly: true }));
  pair.api.put(volumesPath, aVolume("c", mount, { driver: "another.example.com" }));
  pair.api.put(volumesPath, { metadata: { name: "d" }, spec: { nfs: {} } });
  assert.deepEqual([...await pair.use.othersHandles(call())], ["handle-of-c"]);
  const volumes = (await pair.use.volumes(call())).toSorted((a, b) => a.name < b.name ? -1 : 1);
  const shown = volumes.map((one) => [one.name, one.volumeId, one.access, one.fsType, one.accessModes]);
  assert.deepEqual(shown, [
    ["a", "handle-of-a", "block", "", ["ReadWriteMany"]],
    ["b", "handle-of-b", "mount", "xfs", ["ReadOnlyMany"]],
  ]);
  assert.deepEqual(volumes.map(({ readOnly }) => readOnly), [false, true]);
  assert.deepEqual(volumes.map(({ attributes }) => attributes), [{ nvmePort: "4420" }, {}]);
});

Deno.test("KubernetesClusterView names snapshots of every driver, and none while one is being made or none is shown", async () => {
  await using pair = await start();
  const content = (name: string, driver: string, handle?: string): KubeObject => ({
    metadata: { name },
    spec: { driver, source: { volumeHandle: "pvc-1" } },
    status: handle === undefined ? {} : { snapshotHandle: handle },
  });
  const handles = async () => await pair.use.snapshotHandles(call());
  pair.api.put(snapshotContentsPath, content("a", testDriver, "snap-a"));
  pair.api.put(snapshotContentsPath, content("b", "another.example.com", "snap-b"));
  const source = { snapshotHandle: "snap-c" };
  pair.api.put(snapshotContentsPath, { metadata: { name: "c" }, spec: { driver: testDriver, source } });
  pair.api.put(snapshotContentsPath, content("e", "another.example.com"));
  assert.deepEqual(await handles(), new Set(["snap-a", "snap-b", "snap-c"]));
  pair.api.put(snapshotContentsPath, content("d", testDriver));
  assert.equal(await handles(), undefined);
  pair.api.put(snapshotContentsPath, content("d", testDriver, "snap-d"));
  assert.equal((await handles())?.size, 4);
  pair.api.rules = clusterRules.filter(({ resources }) => resources[0] !== "volumesnapshotcontents");
  assert.equal(await handles(), undefined);
});

Deno.test("KubernetesClusterView says what people call volumes and snapshots, and lists only snapshots for it", async () => {
  await using pair = await start();
  const volume = (name: string, driver: string, spec: object) =>
    pair.api.put(volumesPath, {
      metadata: { name },
      spec: { csi: { driver, volumeHandle: `handle-of-${name}` }, ...spec },
    });
  const claimRef = { namespace: "default", name: "photos", uid: "1" };
  volume("a", testDriver, { claimRef, storageClassName: "rds-ext4" });
  volume("b", testDriver, { claimRef: { ...claimRef, name: "static" } });
  volume("reserved", testDriver, { claimRef: { namespace: "default", name: "later" } });
  volume("free", testDriver, {});
  volume("others", "another.example.com", { claimRef });
  const content = (name: string, driver: string, over: object = {}) =>
    pair.api.put(snapshotContentsPath, {
      metadata: { name },
      spec: { driver, source: {}, volumeSnapshotRef: { namespace: "default", name: `of-${name}` }, ...over },
      status: { snapshotHandle: `handle-of-${name}` },
    });
  content("s", testDriver, { volumeSnapshotClassName: "rds" });
  content("t", "another.example.com");
  content("u", testDriver, { volumeSnapshotRef: {} });
  await pair.use.allAttachments(call());
  const before = pair.api.requests.length;
  const named = (id: string, name: string, className: string) => ({
    ...{ id: `handle-of-${id}`, namespace: "default", name, className },
  });
  assert.deepEqual(await pair.use.names(call()), [
    named("a", "photos", "rds-ext4"),
    named("b", "static", ""),
    named("s", "of-s", "rds"),
  ]);
  assert.equal(pair.api.requests.length, before + 1);
  pair.api.rules = clusterRules.filter(({ resources }) => resources[0] !== "volumesnapshotcontents");
  assert.equal((await pair.use.names(call())).length, 2);
});

Deno.test("KubernetesClusterView names the node of an attachment as the attacher does, and leaves other drivers' out", async () => {
  await using pair = await start();
  pair.api.put(volumesPath, aVolume("a", {}));
  const drivers = [{ name: testDriver, nodeID: "id-of-node-1" }, { name: "another", nodeID: "x" }];
  pair.api.put(csiNodesPath, { metadata: { name: "node-1" }, spec: { drivers } });
  const answered = { attached: true, attachmentMetadata: { epoch: "7-0a0b0c0d" } };
  pair.api.put(attachmentsPath, { ...anAttachment("a", "node-1"), status: answered });
  pair.api.put(
    attachmentsPath,
    anAttachment("a", "gone", { annotations: { "csi.alpha.kubernetes.io/node-id": "id-of-gone" } }),
  );
  pair.api.put(attachmentsPath, { ...anAttachment("a", "unknown"), status: { attached: false } });
  pair.api.put(attachmentsPath, anAttachment("nobody's", "node-1"));
  const other = anAttachment("a", "node-9");
  pair.api.put(attachmentsPath, { ...other, spec: { ...other["spec"] as object, attacher: "another" } });
  const found = await pair.use.attachments(call());
  const sinceSeconds = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000;
  assert.deepEqual(found.toSorted((a, b) => a.nodeId < b.nodeId ? -1 : 1), [
    { volumeId: "handle-of-a", nodeId: "", attached: false, sinceSeconds, epochCounter: 0 },
    { volumeId: "handle-of-a", nodeId: "id-of-gone", attached: true, sinceSeconds, epochCounter: 0 },
    { volumeId: "handle-of-a", nodeId: "id-of-node-1", attached: true, sinceSeconds, epochCounter: 7 },
  ]);
});

Deno.test("KubernetesClusterView knows the latest epoch of a volume's attachments, whichever object they name", async () => {
  await using pair = await start();
  pair.api.put(volumesPath, aVolume("a", {}));
  const inEpoch = (volume: string, node: string, epoch: string) => ({
    ...anAttachment(volume, node),
    status: { attached: true, attachmentMetadata: { epoch } },
  });
  for (
    const [node, epoch] of [["node-1", "7-0a0b0c0d"], ["node-2", "8-0a0b0c0d"], ["node-3", "none"]] as const
  ) {
    pair.api.put(attachmentsPath, inEpoch("a", node, epoch));
  }
  pair.api.put(attachmentsPath, inEpoch("b", "node-1", "9-0a0b0c0d"));
  assert.equal(await pair.use.latestEpoch("handle-of-a", call()), 8);
  // Made since the last list, and a second object of the first volume.
  pair.api.put(volumesPath, aVolume("b", {}));
  assert.equal(await pair.use.latestEpoch("handle-of-b", call()), 9);
  pair.api.put(volumesPath, aVolume("twin", {}, { volumeHandle: "handle-of-a" }));
  pair.api.put(attachmentsPath, inEpoch("twin", "node-4", "10-0a0b0c0d"));
  await pair.use.allAttachments(call());
  assert.equal(await pair.use.latestEpoch("handle-of-a", call()), 10);
  assert.equal(await pair.use.latestEpoch("handle-of-c", call()), 0);
  pair.api.faults.push({ match: /volumeattachments/, status: 500 });
  await assert.rejects(
    pair.use.latestEpoch("handle-of-a", call()),
    refusal("unavailable", /Cannot ask the cluster/),
  );
});

Deno.test("KubernetesClusterView reads one list for all that ask for latest epochs while another is read, and none from before", async () => {
  await using pair = await start();
  for (const name of ["a", "b", "c"]) pair.api.put(volumesPath, aVolume(name, {}));
  await pair.use.volumes(call());
  const before = pair.api.count(/volumeattachments/);
  const first = pair.use.latestEpoch("handle-of-a", call());
  // By now the first list is on its way.
  await Promise.resolve();
  const inEpoch = {
    ...anAttachment("c", "node-1"),
    status: { attached: true, attachmentMetadata: { epoch: "7-0a0b0c0d" } },
  };
  pair.api.put(attachmentsPath, inEpoch);
  const later = ["a", "b", "c"].map((name) => pair.use.latestEpoch(`handle-of-${name}`, call()));
  assert.deepEqual([await first, ...await Promise.all(later)], [0, 0, 0, 7]);
  assert.equal(pair.api.count(/volumeattachments/) - before, 2);
});

Deno.test("KubernetesClusterView names this driver's attachments whose PersistentVolume is gone, and no others", async () => {
  await using pair = await start();
  pair.api.put(volumesPath, aVolume("a", {}));
  pair.api.put(attachmentsPath, anAttachment("a", "node-1"));
  assert.deepEqual(await pair.use.unknownVolumeAttachments(call()), []);
  pair.api.put(attachmentsPath, anAttachment("gone", "node-2"));
  const other = anAttachment("gone-too", "node-3");
  pair.api.put(attachmentsPath, { ...other, spec: { ...other["spec"] as object, attacher: "another" } });
  const inline = anAttachment("inline", "node-4");
  pair.api.put(attachmentsPath, {
    ...inline,
    spec: { ...inline["spec"] as object, source: { inlineVolumeSpec: {} } },
  });
  const sinceSeconds = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000;
  assert.deepEqual(await pair.use.unknownVolumeAttachments(call()), [
    { name: "csi-gone-node-2", volumeName: "gone", nodeName: "node-2", sinceSeconds },
  ]);
  assert.deepEqual((await pair.use.attachments(call())).map(({ volumeId }) => volumeId), ["handle-of-a"]);
});

Deno.test("KubernetesClusterView does not report an attachment as orphaned that is deleted together with its PersistentVolume", async () => {
  const list = (items: unknown[]) => ({ kind: "List", metadata: {}, items });
  const answers = [list([anAttachment("gone", "node-1")]), list([]), list([])];
  const api = { request: <T>() => Promise.resolve(answers.shift() as T) };
  const use = viewOf(api);
  assert.deepEqual(await use.unknownVolumeAttachments(call()), []);
  assert.equal(answers.length, 0);
});

Deno.test("KubernetesClusterView is unavailable when a list cannot be read completely", async () => {
  await using pair = await start();
  pair.api.faults.push({ match: /volumeattachments/, status: 500 });
  assert.deepEqual(await pair.use.volumes(call()), []);
  await assert.rejects(pair.use.attachments(call()), refusal("unavailable", /500/));
});

Deno.test("KubernetesClusterView checks whether attachments show which nodes have a volume", async () => {
  await using pair = await start();
  await pair.use.assertAttachmentsReadable(call());
  const spec = { attachRequired: false };
  pair.api.put("/apis/storage.k8s.io/v1/csidrivers", { metadata: { name: testDriver }, spec });
  await assert.rejects(pair.use.assertAttachmentsReadable(call()), refusal("precondition", /attachRequired/));
  pair.api.rules = [];
  await assert.rejects(pair.use.assertAttachmentsReadable(call()), refusal("unavailable", /403/));
});

Deno.test("KubernetesClusterView does not mistake another answer for an empty list", async () => {
  for (const answer of [{}, { kind: "Status", status: "Success" }, { items: [] }]) {
    const api = { request: <T>() => Promise.resolve(answer as T) };
    const use = viewOf(api);
    await assert.rejects(use.volumes(call()), refusal("unavailable", /no list/));
    await assert.rejects(use.attachments(call()), refusal("unavailable", /no list/));
  }
});

async function withAttachments(
  work: (pair: KubePair, use: KubernetesClusterView) => Promise<void>,
): Promise<void> {
  await using pair = await start();
  await work(pair, pair.use);
}

Deno.test("KubernetesClusterView.allAttachments() returns each one's volume, and its publish context", () =>
  withAttachments(assertReported));

async function assertReported({ api }: KubePair, use: KubernetesClusterView): Promise<void> {
  api.put(volumesPath, aPersistentVolume("v", { attributes: { migrationTimeoutSeconds: "60" } }));
  const published = { epoch: { counter: 3, nonce: "0a0b0c0d" }, nqn: "nqn.x:v", port: 4420 };
  const attachment = aVolumeAttachment("v", "n", {
    publishContext: { epoch: "3-0a0b0c0d", nqn: "nqn.x:v", nvmePort: "4420", size: "1" },
    deleting: true,
  });
  const annotations = { "csi.alpha.kubernetes.io/node-id": "id-n" };
  api.put(attachmentsPath, { ...attachment, metadata: { ...attachment.metadata, annotations } });
  assert.deepEqual(await use.allAttachments(call()), [
    { volumeId: "v", nodeName: "n", nodeId: "id-n", attached: true, deleting: true, published },
  ]);
  assert.deepEqual(use.volumeContext("v"), { migrationTimeoutSeconds: "60" });
  assert.equal(use.volumeContext("w"), undefined);
}

Deno.test("KubernetesClusterView.allAttachments() leaves out other drivers', and keeps one of a missing volume as unknown", async () => {
  await withAttachments(async ({ api }, use) => {
    const other = aVolumeAttachment("other", "n");
    (other["spec"] as { attacher: string }).attacher = "another.driver";
    api.put(attachmentsPath, other);
    api.put(attachmentsPath, aVolumeAttachment("gone", "n"));
    const inline = aVolumeAttachment("inline", "n");
    (inline["spec"] as { source: unknown }).source = {
      inlineVolumeSpec: { csi: { volumeHandle: "inline" } },
    };
    api.put(attachmentsPath, inline);
    const ids = (await use.allAttachments(call())).map(({ volumeId }) => volumeId);
    assert.deepEqual(ids, [undefined, "inline"]);
  });
});

Deno.test("KubernetesClusterView.allAttachments() is refused if the cluster makes none for this driver, because nothing proves then that a volume is unused", async () => {
  await withAttachments(async ({ api }, use) => {
    const drivers = "/apis/storage.k8s.io/v1/csidrivers";
    const driver = (attachRequired: boolean) => ({
      metadata: { name: testDriver },
      spec: { attachRequired },
    });
    api.put(drivers, driver(true));
    assert.deepEqual(await use.allAttachments(call()), []);
    api.put(drivers, driver(false));
    const refused = refusal("precondition", /attachRequired: false: csidriver=/);
    await assert.rejects(use.allAttachments(call()), refused);
  });
  for (const match of [/csidrivers/, /volumeattachments/, /persistentvolumes/]) {
    await withAttachments(async ({ api }, use) => {
      api.faults.push({ match, status: 500 });
      await assert.rejects(use.allAttachments(call()), { kind: "unavailable" });
    });
  }
});

Deno.test("KubernetesClusterView.allAttachments() returns the volume also if two objects name it", async () => {
  await withAttachments(async ({ api }, use) => {
    for (const name of ["v", "static-v"]) {
      const volume = aPersistentVolume(name);
      (volume["spec"] as { csi: { volumeHandle: string } }).csi.volumeHandle = "v";
      api.put(volumesPath, volume);
      api.put(attachmentsPath, aVolumeAttachment(name, "n"));
    }
    const ids = (await use.allAttachments(call())).map(({ volumeId }) => volumeId);
    assert.deepEqual(ids, ["v", "v"]);
  });
});
