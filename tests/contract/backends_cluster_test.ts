// One controller of several routers in a cluster, and what happens to volumes when the names of routers are mixed up.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { volumesPath } from "../../src/kubernetes/objects.ts";
import { clusterRules, namespaceRules } from "../support/access_rules.ts";
import { FakeKubeApi } from "../fakes/kube_api.ts";
import { aPersistentVolume, testDriver } from "../fakes/kube_client.ts";
import { type BackendsStack, routerState, slotsOf, startBackends } from "../support/backends_stack.ts";
import { createRequest, publishRequest, rejectsWith } from "../support/controller_calls.ts";
import { eventually } from "../support/eventually.ts";

const two = [{ name: "nas1", isDefault: true }, { name: "nas2" }];
const node = "csi.rds.srvlab.io/attached-node";

async function create({ clients }: Pick<BackendsStack, "clients">, name: string, backend: string) {
  const request = createRequest(name, { parameters: { backend } });
  return (await clients.controller.call("CreateVolume", request)).volume!.volumeId;
}

Deno.test("each router's volumes are shown and reported on their own objects", async () => {
  await using api = new FakeKubeApi();
  api.rules = [...clusterRules, ...namespaceRules];
  api.put("/api/v1/namespaces", { metadata: { name: "kube-system", uid: "a-cluster's-uid" } });
  for (const name of ["worker-1", "worker-2"]) {
    const spec = { drivers: [{ name: testDriver, nodeID: name }] };
    api.put("/apis/storage.k8s.io/v1/csinodes", { metadata: { name }, spec });
  }
  const kubeconfig = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  try {
    await Deno.writeTextFile(kubeconfig, api.kubeconfig());
    await using stack = await startBackends(two, ["--kubeconfig", kubeconfig, "--cluster-id="]);
    const { controller } = stack.clients;
    const ids = [await create(stack, "pvc-same", "nas1"), await create(stack, "pvc-same", "nas2")];
    for (const [at, id] of ids.entries()) {
      const object = aPersistentVolume(id);
      object.metadata.name = `pv-${at}`;
      api.put(volumesPath, object);
      await controller.call("ControllerPublishVolume", publishRequest(id, `worker-${at + 1}`));
    }
    const shown = () =>
      [0, 1].map((at) => api.get(volumesPath, `pv-${at}`)?.metadata.annotations?.[node]).join();
    await eventually(() => shown() === "worker-1,worker-2");
    await assert.rejects(controller.call("ControllerPublishVolume", publishRequest(ids[1]!, "worker-1")));
    const events = () => api.all("/api/v1/namespaces/apps/events");
    await eventually(() => events().length > 0);
    assert.deepEqual(
      new Set(events().map((event) => (event["involvedObject"] as { uid: string }).uid)),
      new Set([`claim-uid-${ids[1]}`]),
    );
    await controller.call("ControllerUnpublishVolume", { volumeId: ids[0]!, nodeId: "worker-1" });
    await eventually(() => shown() === ",worker-2");
    assert.deepEqual(api.requests.filter(({ status }) => status === 403), []);
  } finally {
    await Deno.remove(kubeconfig);
  }
});

Deno.test("after the boot of one router only its own calls wait until it is compared with the cluster", async () => {
  await using api = new FakeKubeApi();
  api.put("/api/v1/namespaces", { metadata: { name: "kube-system", uid: "a-cluster's-uid" } });
  const kubeconfig = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  try {
    await Deno.writeTextFile(kubeconfig, api.kubeconfig());
    const flags = ["--kubeconfig", kubeconfig, "--reconcile-interval", "1h"];
    await using stack = await startBackends(two, flags);
    const { controller } = stack.clients;
    const ids = [await create(stack, "pvc-same", "nas1"), await create(stack, "pvc-same", "nas2")];
    api.faults.push({ match: /GET .*volumeattachments/, delayMs: 3_000 });
    const nas2 = stack.simulators["nas2"]!;
    await control(nas2, "POST /reboot", { downMs: 1 });
    await eventually(() => nas2.model.system.uptimeMs < 60_000);
    const lists = () => api.requests.filter(({ path }) => path.endsWith("/volumeattachments")).length;
    const before = lists();
    const answered: string[] = [];
    const read = async (volumeId: string) => {
      await controller.call("ControllerGetVolume", { volumeId });
      answered.push(volumeId);
    };
    const second = read(ids[1]!);
    await read(ids[0]!);
    await second;
    assert.deepEqual(answered, ids);
    assert.equal(lists() - before, 1, "the other router is not looked at");
  } finally {
    await Deno.remove(kubeconfig);
  }
});

const mixUps: readonly Readonly<Record<string, string>>[] = [
  // Each map gives, for a name in the new file, the name that the same router had before.
  { nas1: "nas2", nas2: "nas1" },
  { nas1: "nas1", nas9: "nas2" },
  { nas9: "nas1", nas2: "nas2" },
];

for (const names of mixUps) {
  Deno.test(`no volume is touched when routers are mixed up in the file: ${JSON.stringify(names)}`, async () => {
    await using stack = await startBackends([{ name: "nas1" }, { name: "nas2" }]);
    const ids = [await create(stack, "pvc-a", "nas1"), await create(stack, "pvc-b", "nas2")];
    for (const id of ids) {
      await stack.clients.controller.call("ControllerPublishVolume", publishRequest(id));
    }
    const before = await Promise.all(Object.values(stack.simulators).map(routerState));
    const { controller } = (await stack.renamed(names)).clients;
    const slots = ids.map((id) => id.split("/")[1]!);
    const kept = ids.filter((id) => names[id.split("/")[0]!] === id.split("/")[0]);
    const listed = (await controller.call("ListVolumes", {})).entries;
    assert.deepEqual(
      listed.map(({ volume }) => volume!.volumeId),
      kept,
      "only what is named as it was is seen",
    );
    for (const name of Object.keys(names)) {
      for (const slot of slots) {
        const id = `${name}/${slot}`;
        if (kept.includes(id)) continue;
        await assert.rejects(controller.call("ControllerPublishVolume", publishRequest(id, "node-2")));
        // Where the volume is missing there is nothing to undo. A disk there belongs to another router's volume, and
        // the call is refused.
        await controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "" }).catch(() => {});
        await controller.call("DeleteVolume", { volumeId: id }).catch(() => {});
      }
    }
    assert.deepEqual(await Promise.all(Object.values(stack.simulators).map(routerState)), before);
  });
}

Deno.test("a volume of the router that was the default before is not reported as gone, and everything works when the default is restored", async () => {
  await using stack = await startBackends(two);
  const volumeId = await create(stack, "pvc-a", "nas1");
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(volumeId));
  const before = await Promise.all(Object.values(stack.simulators).map(routerState));
  const names = { nas1: "nas1", nas2: "nas2" };
  const { controller } = (await stack.renamed(names, "nas2")).clients;
  assert.deepEqual((await controller.call("ListVolumes", {})).entries, []);
  const elsewhere = /another router of --config has it: .*on=nas1;.*restore them/;
  const unpublish = controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
  await rejectsWith(status.FAILED_PRECONDITION, unpublish, elsewhere);
  await rejectsWith(status.FAILED_PRECONDITION, controller.call("DeleteVolume", { volumeId }), elsewhere);
  await rejectsWith(
    status.NOT_FOUND,
    controller.call("ControllerPublishVolume", publishRequest(volumeId, "node-2")),
  );
  assert.ok(stack.log.some((line) => /has volumes of another router.*"owners":"nas2"/.test(line)));
  // A volume that never existed is still reported as gone.
  await controller.call("DeleteVolume", { volumeId: "pvc-0000000000000000000000000000" });
  assert.deepEqual(await Promise.all(Object.values(stack.simulators).map(routerState)), before);
  const again = (await stack.renamed(names, "nas1")).clients.controller;
  await again.call("ListVolumes", {});
  await again.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
  await again.call("DeleteVolume", { volumeId });
  await again.call("DeleteVolume", { volumeId });
});

Deno.test("volumes of routers whose addresses were exchanged are not reported as gone", async () => {
  await using stack = await startBackends([{ name: "nas1" }, { name: "nas2" }]);
  const volumeId = await create(stack, "pvc-a", "nas1");
  const { controller } = (await stack.renamed({ nas1: "nas2", nas2: "nas1" })).clients;
  await controller.call("ListVolumes", {});
  await rejectsWith(status.FAILED_PRECONDITION, controller.call("DeleteVolume", { volumeId }), /on=nas2;/);
  assert.deepEqual(await slotsOf(stack.simulators["nas1"]!), [volumeId.split("/")[1]]);
});

for (const address of ["127.0.0.1", "localhost", "::ffff:127.0.0.1"]) {
  Deno.test(`a router under two names, the second at ${address}, is no exchange of names: what was deleted is reported as gone`, async () => {
    await using stack = await startBackends([
      {
        name: "nas1",
        lines: ["basePaths: [/storage-pool/one]"],
        simulator: { basePaths: ["/storage-pool"] },
      },
      { name: "nas2", lines: ["basePaths: [/storage-pool/two]"], sameAs: "nas1", address },
    ]);
    const { controller } = stack.clients;
    const volumeId = await create(stack, "pvc-a", "nas1");
    await controller.call("ListVolumes", {});
    for (const _twice of [1, 2]) {
      await controller.call("DeleteVolume", { volumeId });
      await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
    }
    assert.deepEqual(stack.log.filter((line) => line.includes("has volumes of another router")), []);
  });
}

Deno.test("a static volume is not taken from a router that only has a disk of the same name", async () => {
  await using stack = await startBackends(two);
  const made = { slot: "data", "file-path": "/storage-pool/data.img", size: String(1n << 30n) };
  for (const router of Object.values(stack.simulators)) await control(router, "POST /disks", made);
  const request = { ...publishRequest("data"), volumeContext: { static: "true" } };
  await stack.clients.controller.call("ControllerPublishVolume", request);
  await stack.clients.controller.call("ControllerUnpublishVolume", { volumeId: "data", nodeId: "node-1" });
  const before = await Promise.all(Object.values(stack.simulators).map(routerState));
  const { controller } = (await stack.renamed({ nas1: "nas1", nas2: "nas2" }, "nas2")).clients;
  await controller.call("ListVolumes", {});
  const published = controller.call("ControllerPublishVolume", request);
  await rejectsWith(status.FAILED_PRECONDITION, published, /another router of --config has it: .*on=nas1;/);
  assert.deepEqual(await Promise.all(Object.values(stack.simulators).map(routerState)), before);
});
