import assert from "node:assert/strict";
import {
  aPersistentVolume,
  aVolumeAttachment,
  startKube,
  testDriver,
} from "../../tests/fakes/kube_client.ts";
import { systemClock } from "../host/clock.ts";
import { nodeDigest } from "../volume/model/record.ts";
import { KubernetesDetachedNodes } from "./detached_nodes.ts";
import { attachmentsPath, csiNodesPath, nodesPath, volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { clusterRules } from "../../tests/support/access_rules.ts";

const volumeId = "second/pvc-1";
const name = "worker-1";
const sinceSeconds = 1_700_000_000;

/** A cluster with a node that was given a volume, and why it may still use that. */
async function startCluster() {
  const pair = await startKube();
  const { api, client } = pair;
  api.rules = clusterRules;
  const options = { api: client, clock: systemClock, driverName: testDriver };
  const nodes = new KubernetesDetachedNodes({ ...options, volumes: new PersistentVolumes(options) });
  const volume = aPersistentVolume(volumeId);
  api.put(volumesPath, { ...volume, metadata: { ...volume.metadata, name: "pv" } });
  api.put(csiNodesPath, { metadata: { name }, spec: { drivers: [{ name: testDriver, nodeID: "id-1" }] } });
  const report = (volumesInUse: readonly string[]) =>
    void api.put(nodesPath, {
      metadata: { name, creationTimestamp: new Date(sinceSeconds * 1000).toISOString() },
      status: {
        conditions: [
          { type: "MemoryPressure", status: "False" },
          { type: "Ready", status: "True", lastHeartbeatTime: new Date().toISOString() },
        ],
        volumesInUse,
      },
    });
  report([]);
  const detached = { volumeId, nodeDigest: nodeDigest("id-1"), sinceSeconds };
  const reason = (signal = new AbortController().signal) => nodes.reasonAgainst(detached, signal);
  return { api, reason, report, [Symbol.asyncDispose]: () => pair[Symbol.asyncDispose]() };
}

Deno.test("a node has given up a volume when its Node does not list exactly the volume's handle with its router", async () => {
  await using scene = await startCluster();
  const { api, reason, report } = scene;
  assert.equal(await reason(), undefined);
  report([`kubernetes.io/csi/${testDriver}^pvc-1`, `kubernetes.io/csi/another^${volumeId}`]);
  assert.equal(await reason(), undefined);
  report([`kubernetes.io/csi/${testDriver}^${volumeId}`]);
  assert.match(await reason() ?? "", /uses the volume: worker-1/);
  api.delete(nodesPath, name);
  assert.match(await reason() ?? "", /no Node/);
  api.delete(volumesPath, "pv");
  assert.match(await reason() ?? "", /PersistentVolume is gone|takes too long/);
});

Deno.test("a VolumeAttachment that is not being deleted says that the node may use the volume, any other does not", async () => {
  await using scene = await startCluster();
  const { api, reason } = scene;
  const put = (node: string, deleting: boolean) => {
    const attachment = aVolumeAttachment("pvc-1", node, { deleting });
    const source = { persistentVolumeName: "pv" };
    api.put(attachmentsPath, { ...attachment, spec: { attacher: testDriver, nodeName: node, source } });
  };
  put("worker-2", false);
  put(name, true);
  assert.equal(await reason(), undefined);
  put(name, false);
  assert.match(await reason() ?? "", /not being deleted/);
});

Deno.test("a VolumeAttachment of any PersistentVolume of the volume counts, also of one that was added since the last list", async () => {
  await using scene = await startCluster();
  const { api, reason } = scene;
  assert.equal(await reason(), undefined);
  const volume = aPersistentVolume(volumeId);
  api.put(volumesPath, { ...volume, metadata: { ...volume.metadata, name: "pv-2" } });
  for (const persistentVolumeName of ["pv", "pv-2"]) {
    const spec = { attacher: testDriver, nodeName: name, source: { persistentVolumeName } };
    const attachment = { ...aVolumeAttachment("pvc-1", name), spec };
    api.put(attachmentsPath, attachment);
    assert.match(await reason() ?? "", /not being deleted/, persistentVolumeName);
    api.delete(attachmentsPath, attachment.metadata.name);
    assert.equal(await reason(), undefined);
  }
});

Deno.test("a cluster that does not answer is a reason, and a cancelled call is none", async () => {
  await using scene = await startCluster();
  const { api, reason } = scene;
  api.rules = clusterRules.filter(({ resources }) => !resources.includes("nodes"));
  assert.match(await reason() ?? "", /the cluster does not say.*nodes/);
  const cancelled = AbortSignal.abort(new Error("gone"));
  await assert.rejects(reason(cancelled), /gone/);
});
