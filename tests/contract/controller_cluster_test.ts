import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { volumesPath } from "../../src/kubernetes/objects.ts";
import { clusterRules, namespaceRules, startupTaintRules } from "../support/access_rules.ts";
import { volumeIdFor } from "../../src/volume/model/ids/ids.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { aPersistentVolume, aVolumeAttachment, testDriver } from "../fakes/kube_client.ts";
import { scaledClock } from "../fakes/scaled_clock.ts";
import type { FakeKubeApi } from "../fakes/kube_api.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import { changesNothing, create, publishRequest, rejectsWith, state } from "../support/controller_calls.ts";
import { eventually } from "../support/eventually.ts";

const node = "csi.rds.srvlab.io/attached-node";
const attachments = "/apis/storage.k8s.io/v1/volumeattachments";
const onClaim = "/api/v1/namespaces/apps/events";
const attachedNode = (api: FakeKubeApi, id: string) =>
  api.get(volumesPath, `pv-${id}`)?.metadata.annotations?.[node];

Deno.test("without --cluster-id the cluster's own uid names the files of its volumes", async () => {
  await using cluster = await startClusterStack({ flags: ["--cluster-id="] });
  const id = await create(cluster.stack, "pvc-one");
  const { disks } = await state(cluster.stack);
  const path = String(disks.find(({ slot }) => slot === id)?.["file-path"]);
  assert.ok(path.includes(`.${clusterHash("a-cluster's-uid")}`), path);
});

Deno.test("under the rules of its role a controller attaches, detaches, and shows both", async () => {
  const prepare = (api: FakeKubeApi) => void (api.rules = [...clusterRules, ...namespaceRules]);
  await using cluster = await startClusterStack({ prepare });
  const { api, stack } = cluster;
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-one");
  api.put(volumesPath, aPersistentVolume(volumeId));
  await controller.call("ControllerPublishVolume", publishRequest(volumeId, "worker-1"));
  await eventually(() => attachedNode(api, volumeId) === "worker-1");
  await rejectsWith(
    status.FAILED_PRECONDITION,
    controller.call("ControllerPublishVolume", publishRequest(volumeId, "worker-2")),
    /worker-1/,
  );
  const foreign = controller.call("ControllerPublishVolume", publishRequest(volumeId, "worker-4"));
  await rejectsWith(status.NOT_FOUND, foreign, /worker-4/);
  await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "worker-1" });
  await eventually(() => attachedNode(api, volumeId) === undefined);
  await eventually(() => api.all(onClaim).length === 2);
  assert.match(String(api.all(onClaim).map((event) => event["message"])), /worker-2 was refused.*worker-1/);
  assert.deepEqual(api.requests.filter(({ status }) => status === 403), []);
});

Deno.test("a volume that several PersistentVolumes name is deleted only for the last one", async () => {
  const shared = volumeIdFor("pvc-shared");
  const object = aPersistentVolume(shared);
  const prepare = (api: FakeKubeApi) => {
    api.rules = [...clusterRules, ...namespaceRules];
    api.put(volumesPath, { ...object, metadata: { ...object.metadata, name: "again" } });
    api.put(volumesPath, object);
  };
  await using cluster = await startClusterStack({ prepare, flags: ["--unexport-grace=0s"] });
  const { api, stack } = cluster;
  const { controller } = stack.clients;
  await eventually(() => api.count(/GET .*persistentvolumes/) > 0);
  await create(stack, "pvc-shared");
  const names = new RegExp(`persistentvolumes=again, pv-${shared}`);
  const refused = async () =>
    await rejectsWith(
      status.FAILED_PRECONDITION,
      controller.call("DeleteVolume", { volumeId: shared }),
      names,
    );
  await changesNothing(stack, refused);
  api.faults.push({ match: /persistentvolumes/, status: 500 });
  await changesNothing(stack, refused);
  api.faults.length = 0;
  api.delete(volumesPath, "again");
  await controller.call("DeleteVolume", { volumeId: shared });
  assert.deepEqual((await state(stack)).disks.filter(({ slot }) => slot === shared), []);
});

Deno.test("the annotation of a claim lets its volume be formatted in its next epoch", async () => {
  const prepare = (api: FakeKubeApi) => void (api.rules = [...clusterRules, ...namespaceRules]);
  await using cluster = await startClusterStack({ prepare, flags: ["--unexport-grace=0s"] });
  const { api, stack } = cluster;
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-one");
  api.put(volumesPath, aPersistentVolume(volumeId));
  const claim = (annotations: Record<string, string>) =>
    api.put("/api/v1/namespaces/apps/persistentvolumeclaims", {
      metadata: {
        name: `claim-${volumeId}`,
        namespace: "apps",
        uid: `claim-uid-${volumeId}`,
        annotations,
      },
    });
  claim({});
  const epoch = async () => {
    const { publishContext } = await controller.call(
      "ControllerPublishVolume",
      publishRequest(volumeId, "worker-1"),
    );
    await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "worker-1" });
    return [publishContext["mayFormat"], publishContext["claim"]];
  };
  assert.deepEqual(await epoch(), ["true", undefined], "its first epoch");
  assert.deepEqual(await epoch(), ["false", `apps/claim-${volumeId}`]);
  claim({ "rds.csi.srvlab.io/allow-format": `${volumeId}@3` });
  assert.deepEqual(await epoch(), ["true", undefined]);
  assert.deepEqual(await epoch(), ["false", `apps/claim-${volumeId}`], "once");
  assert.deepEqual(api.requests.filter(({ status }) => status === 403), []);
});

Deno.test("one of two controllers turns an export on again that was turned off by hand, and the other takes over", async () => {
  const prepare = (api: FakeKubeApi) => void (api.rules = [...clusterRules, ...namespaceRules]);
  await using cluster = await startClusterStack({
    prepare,
    flags: ["--reconcile-interval", "5s"],
    clock: scaledClock(5),
  });
  const { api, stack } = cluster;
  const second = await stack.another();
  const volumeId = await create(stack, "a");
  api.put(volumesPath, aPersistentVolume(volumeId));
  const request = publishRequest(volumeId, "worker-1");
  const { publishContext } = await stack.clients.controller.call("ControllerPublishVolume", request);
  api.put(attachments, aVolumeAttachment(volumeId, "worker-1", { publishContext }));
  const isExported = async () =>
    (await state(stack)).disks.find(({ slot }) => slot === volumeId)?.["nvme-tcp-export"] === true;
  for (const end of [() => stack.driver.stop(1_000), () => Promise.resolve()]) {
    await control(stack.simulator, `PATCH /disks/${volumeId}`, { "nvme-tcp-export": false });
    assert.equal(await isExported(), false);
    await eventually(isExported, 40_000);
    await end();
  }
  const again = await second.clients.controller.call("ControllerPublishVolume", request);
  assert.deepEqual(again.publishContext, publishContext);
  const leases = api.all("/apis/coordination.k8s.io/v1/namespaces/storage/leases");
  assert.deepEqual(leases.map(({ metadata }) => metadata.name), ["rds.csi.srvlab.io-controller"]);
  assert.deepEqual(api.requests.filter(({ status }) => status === 403), []);
});
Deno.test("attaching and detaching go on while the API server is away, and are shown once it is back", async () => {
  await using cluster = await startClusterStack({ clock: scaledClock(5) });
  const { api, stack } = cluster;
  const { controller } = stack.clients;
  const [kept, left] = [await create(stack, "a"), await create(stack, "b")];
  for (const id of [kept, left]) api.put(volumesPath, aPersistentVolume(id));
  const fresh = await create(stack, "c");
  for (const id of [kept, left]) {
    await controller.call("ControllerPublishVolume", publishRequest(id, "worker-1"));
  }
  await controller.call("ControllerUnpublishVolume", { volumeId: kept, nodeId: "worker-1" });
  await eventually(() => attachedNode(api, left) === "worker-1");
  api.faults.push({ match: /./, status: 503 });
  await assert.rejects(
    controller.call("ControllerPublishVolume", publishRequest(fresh, "worker-2")),
    /on record as never written, and the cluster does not say/,
  );
  await controller.call("ControllerPublishVolume", publishRequest(kept, "worker-2"));
  await controller.call("ControllerUnpublishVolume", { volumeId: left, nodeId: "worker-1" });
  api.faults.length = 0;
  await eventually(() => attachedNode(api, kept) === "worker-2" && attachedNode(api, left) === undefined);
});

Deno.test("under the rules for it the controller that leads takes the start-up taint off a node with the driver", async () => {
  const taint = { key: "rds.csi.srvlab.io/agent-not-ready", effect: "NoExecute" };
  const nodes = "/api/v1/nodes", csiNodes = "/apis/storage.k8s.io/v1/csinodes";
  const join = (api: FakeKubeApi, name: string, driver: string) => {
    const { metadata: { uid } } = api.put(nodes, { metadata: { name }, spec: { taints: [taint] } });
    const metadata = { name, ownerReferences: [{ kind: "Node", name, uid }] };
    api.put(csiNodes, { metadata, spec: { drivers: [{ name: driver, nodeID: name }] } });
  };
  await using cluster = await startClusterStack({
    flags: ["--startup-taint", taint.key],
    prepare: (api) => {
      api.rules = [...clusterRules, ...namespaceRules, ...startupTaintRules];
      join(api, "new-1", testDriver);
      join(api, "new-2", "another.driver");
    },
  });
  const { api } = cluster;
  const taintsOf = (name: string) => (api.get(nodes, name)?.["spec"] as { taints?: unknown }).taints;
  await eventually(() => taintsOf("new-1") === undefined);
  assert.deepEqual(taintsOf("new-2"), [taint]);
  assert.deepEqual(api.requests.filter(({ status }) => status === 403), []);
});

Deno.test("without --startup-taint a controller reads no node", async () => {
  await using cluster = await startClusterStack();
  const { api } = cluster;
  await eventually(() => api.count(/volumeattachments/) > 0);
  assert.equal(api.count(/ \/api\/v1\/nodes/), 0);
});

Deno.test("the status page names the claims of volumes, and finds volumes by them", async () => {
  await using cluster = await startClusterStack();
  const { api, stack } = cluster;
  const volumeId = await create(stack, "pvc-one");
  const other = await create(stack, "pvc-two");
  api.put(volumesPath, aPersistentVolume(volumeId));
  const read = async (query = "") => {
    const { controller } = await (await fetch(`${stack.driver.metricsUrl}/status.json${query}`)).json();
    return (controller.volumes.items as { id: string; claim: string | null }[]).map((
      { id, claim },
    ) => [id, claim]);
  };
  const claim = `apps/claim-${volumeId}`;
  await stack.clients.controller.call("ListVolumes", {});
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(volumeId, "worker-1"));
  // The page shows what the last look at the cluster and the last list told, each at its own time.
  await eventually(async () =>
    (await read()).length === 2 && (await read()).some(([, name]) => name === claim)
  );
  assert.deepEqual((await read()).toSorted(), [[volumeId, claim], [other, null]].toSorted());
  assert.deepEqual(await read(`?q=${encodeURIComponent(claim)}`), [[volumeId, claim]]);
  assert.match(await (await fetch(`${stack.driver.metricsUrl}/`)).text(), new RegExp(claim));
});
