// Volumes of the legacy Go driver on a simulated router, and a controller that replaces that driver.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { clusterRules, namespaceRules } from "../support/access_rules.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { aClusterVolume, anAttachment, FakeClusterView } from "../fakes/cluster_view.ts";
import type { FakeKubeApi } from "../fakes/kube_api.ts";
import { testDriver } from "../fakes/kube_client.ts";
import {
  changesNothing,
  createRequest,
  gibibyte,
  mount,
  publishRequest,
  rejectsWith,
  state,
} from "../support/controller_calls.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { eventually } from "../support/eventually.ts";

const folder = "/storage-pool/metal-csi";
const id = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const nqn = `nqn.2000-02.com.mikrotik:${id}`;
/** The capability that the attacher sends for SINGLE_NODE_MULTI_WRITER. */
const attached = { ...mount, accessMode: { mode: "SINGLE_NODE_MULTI_WRITER" as const } };

/** A volume in the format of the legacy driver. */
async function addEarlier(stack: Stack, slot: string, over: Record<string, unknown> = {}): Promise<void> {
  await control(stack.simulator, "POST /files", {
    name: `${folder}/${slot}.img`,
    type: "file",
    size: Number(gibibyte),
  });
  await control(stack.simulator, "POST /disks", {
    slot,
    "file-path": `${folder}/${slot}.img`,
    size: String(gibibyte),
    "nvme-tcp-export": true,
    "nvme-tcp-server-port": 4420,
    "nvme-tcp-server-nqn": `nqn.2000-02.com.mikrotik:${slot}`,
    ...over,
  });
}

/** A stack that has finished its sweep at the start: later volumes are taken over by calls only. */
async function startSwept(clusterView: FakeClusterView | undefined): Promise<Stack> {
  const stack = await startStack(clusterView === undefined ? {} : { clusterView });
  const until = performance.now() + 10_000;
  while (clusterView !== undefined && (await stack.count()).execs === 0) {
    assert.ok(performance.now() < until, "there is no look at the start");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return stack;
}

async function disk(stack: Stack, slot = id) {
  return (await state(stack)).disks.find((one) => one.slot === slot)!;
}

async function recordOf(stack: Stack, slot = id) {
  const parsed = parseComment(String((await disk(stack, slot))["comment"]));
  assert.equal(parsed.state, "record");
  return parsed.state === "record" ? parsed.comment : assert.fail();
}

function cluster(...nodes: readonly string[]): FakeClusterView {
  const view = new FakeClusterView();
  view.used = [aClusterVolume(id)];
  view.attached = nodes.map((node) => anAttachment(id, node));
  return view;
}

function calls(stack: Stack) {
  const { controller } = stack.clients;
  return {
    publish: async (node: string, volumeId = id) =>
      (await controller.call("ControllerPublishVolume", publishRequest(volumeId, node, attached)))
        .publishContext,
    unpublish: (node: string, volumeId = id) =>
      controller.call("ControllerUnpublishVolume", { volumeId, nodeId: node }),
    list: async () =>
      (await controller.call("ListVolumes", {})).entries.map(({ volume, status }) => [
        volume!.volumeId,
        status!.publishedNodeIds,
      ]),
  };
}

Deno.test("a volume that a node has is taken over with its NQN, and three rounds of publishing change nothing", async () => {
  const clusterView = cluster("node-1");
  await using stack = await startSwept(clusterView);
  await addEarlier(stack, id, { comment: "backed up on Sundays" });
  const { publish, list } = calls(stack);
  const before = await disk(stack);
  const first = await publish("node-1");
  assert.equal(first!["nqn"], nqn);
  // The fields that a node of the legacy driver reads.
  const { nvme_address, nvme_port, nvme_nqn, fs_type } = first!;
  assert.deepEqual([nvme_address, nvme_port, nvme_nqn, fs_type], ["127.0.0.1", "4420", nqn, "ext4"]);
  assert.equal(first!["epoch"], "0-00000000");
  assert.equal(first!["mayFormat"], "false");
  const after = await disk(stack);
  assert.deepEqual({ ...after, comment: "" }, { ...before, comment: "" });
  const { before: note, record } = await recordOf(stack);
  assert.equal(note, "backed up on Sundays ");
  assert.deepEqual(record.holders.map(({ nodeId }) => nodeId), ["node-1"]);
  await changesNothing(stack, async () => {
    for (let round = 0; round < 3; round++) assert.deepEqual(await publish("node-1"), first);
    await rejectsWith(status.FAILED_PRECONDITION, publish("node-2"), /node=node-1/);
    assert.deepEqual(await list(), [[id, ["node-1"]]]);
  });
});

Deno.test("the volume context that the legacy driver gave its volumes is no reason to refuse one", async () => {
  await using stack = await startSwept(cluster("node-1"));
  await addEarlier(stack, id);
  // The volume context that the legacy driver writes for a StorageClass without parameters.
  const volumeContext = {
    rdsAddress: "127.0.0.1",
    nvmeAddress: "10.0.0.9",
    nvmePort: "4420",
    nqn,
    volumePath: `${folder}/${id}.img`,
    ctrlLossTmo: "-1",
    reconnectDelay: "5",
    keepAliveTmo: "0",
    migrationTimeoutSeconds: "300",
  };
  const { controller } = stack.clients;
  const request = { ...publishRequest(id, "node-1", attached), volumeContext };
  const { publishContext } = await controller.call("ControllerPublishVolume", request);
  assert.deepEqual([publishContext["nqn"], publishContext["nvmeAddress"]], [nqn, "10.0.0.9"]);
  const question = { volumeId: id, volumeContext, volumeCapabilities: [attached] };
  const { confirmed, message } = await controller.call("ValidateVolumeCapabilities", question);
  assert.ok(confirmed !== null, message);
  // A node of the legacy driver would mistake an NQN in the volume context for one of its own.
  const made = await controller.call("CreateVolume", createRequest("pvc-new"));
  assert.equal(made.volume!.volumeContext["nqn"], undefined);
});

Deno.test("a volume taken over keeps its NQN until its first unpublish, and gets epochs from then on", async () => {
  const clusterView = cluster("node-1");
  await using stack = await startSwept(clusterView);
  await addEarlier(stack, id);
  const { publish, unpublish, list } = calls(stack);
  await unpublish("node-1");
  assert.equal((await disk(stack))["nvme-tcp-export"], false);
  assert.deepEqual((await state(stack)).exports, []);
  clusterView.attached = [];
  const context = await publish("node-2");
  assert.match(context!["nqn"]!, new RegExp(`^${nqn}:1-[0-9a-f]{8}$`));
  assert.deepEqual(await list(), [[id, ["node-2"]]]);
  await unpublish("node-2");
  await stack.clients.controller.call("DeleteVolume", { volumeId: id });
  const left = await state(stack);
  assert.ok(!left.disks.some(({ slot }) => slot === id));
  assert.ok(!left.files.some(({ name }) => name.includes(id)), JSON.stringify(left.files));
});
Deno.test("a volume that the legacy driver published while it was being replaced is not disconnected", async () => {
  const clusterView = cluster();
  await using stack = await startSwept(clusterView);
  await addEarlier(stack, id);
  // The sweep at the start has taken the volume over: it has a record without a holder, and its export is on.
  const again = await stack.another();
  const until = performance.now() + 10_000;
  while (parseComment(String((await disk(stack))["comment"])).state !== "record") {
    assert.ok(performance.now() < until, "it is not taken over at the start");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  clusterView.attached = [anAttachment(id, "node-1")];
  const before = await disk(stack);
  const response = await again.clients.controller.call(
    "ControllerPublishVolume",
    publishRequest(id, "node-1", attached),
  );
  assert.equal(response.publishContext["nqn"], nqn);
  assert.deepEqual({ ...await disk(stack), comment: "" }, { ...before, comment: "" });
});

Deno.test("without a cluster, in doubt, and for volumes of others nothing is taken over, and errors name the command", async (t) => {
  const unreadable = cluster("node-1");
  unreadable.readable = false;
  const cases: readonly [string, FakeClusterView | undefined, Record<string, unknown>, RegExp][] = [
    ["no cluster", undefined, {}, /no cluster to ask.*rds-csi adopt pvc-0f8fad5b/],
    ["unreadable", unreadable, {}, /does not say which nodes have it.*rds-csi adopt pvc-0f8fad5b/],
    ["a long note", cluster("node-1"), { comment: "x".repeat(200) }, /would not fit/],
  ];
  for (const [name, clusterView, over, text] of cases) {
    await t.step(name, async () => {
      await using stack = await startSwept(clusterView);
      await addEarlier(stack, id, over);
      const code = status.FAILED_PRECONDITION;
      await changesNothing(stack, async () => {
        await rejectsWith(code, calls(stack).publish("node-1"), text);
        await rejectsWith(code, calls(stack).unpublish("node-1"), text);
        await rejectsWith(code, stack.clients.controller.call("DeleteVolume", { volumeId: id }), text);
      });
    });
  }
});

Deno.test("a read of a volume that was not taken over says so, never reports it as gone, and changes nothing", async () => {
  await using stack = await startSwept(cluster("node-1"));
  await addEarlier(stack, id, { "mount-filesystem": false });
  const { controller } = stack.clients;
  const get = () => controller.call("ControllerGetVolume", { volumeId: id });
  const validate = () =>
    controller.call("ValidateVolumeCapabilities", { volumeId: id, volumeCapabilities: [attached] });
  const reading = () => controller.call("ControllerGetVolumeHealth", { volumeId: id });
  const wording = /not taken it over: volume=pvc-.*rds-csi adopt pvc-/;
  await changesNothing(stack, async () => {
    for (const read of [get, validate, reading]) {
      await rejectsWith(status.FAILED_PRECONDITION, read(), wording);
    }
  });
  await calls(stack).publish("node-1");
  assert.deepEqual((await get()).status?.publishedNodeIds, ["node-1"]);
  assert.notEqual((await validate()).confirmed, null);
  // The cluster attached the volume long before the router booted.
  const statuses = (await reading()).volumeHealth?.healthStatuses ?? [];
  assert.deepEqual(statuses.map(({ reason }) => reason), ["RouterRestarted"]);
});
Deno.test("a controller takes over at its start the volumes that its cluster's objects name, under the rules of its role", async () => {
  const prepare = (api: FakeKubeApi) => {
    api.rules = [...clusterRules, ...namespaceRules];
    api.put("/api/v1/persistentvolumes", {
      metadata: { name: "a" },
      spec: {
        volumeMode: "Filesystem",
        accessModes: ["ReadWriteOnce"],
        csi: { driver: testDriver, volumeHandle: id, fsType: "ext4" },
      },
    });
    api.put("/apis/storage.k8s.io/v1/volumeattachments", {
      metadata: { name: "csi-a" },
      spec: { attacher: testDriver, nodeName: "worker-1", source: { persistentVolumeName: "a" } },
      status: { attached: true },
    });
  };
  await using cluster = await startClusterStack({ prepare });
  const { stack } = cluster;
  await addEarlier(stack, id);
  const { clients } = await stack.another();
  await eventually(async () => parseComment(String((await disk(stack))["comment"])).state === "record");
  const { entries } = await clients.controller.call("ListVolumes", {});
  assert.deepEqual(entries.map(({ status }) => status!.publishedNodeIds), [["worker-1"]]);
  await changesNothing(stack, async () => {
    const answer = await clients.controller.call(
      "ControllerPublishVolume",
      publishRequest(id, "worker-1", attached),
    );
    assert.equal(answer.publishContext["nqn"], nqn);
  });
});
