// A raw block volume that moves from node to node, under a controller that reads the cluster: a third writer is allowed
// only when the cluster shows that the node which left has released the volume.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { attachmentsPath, csiNodesPath, nodesPath, volumesPath } from "../../src/kubernetes/objects.ts";
import { clusterRules, kubevirtRules, namespaceRules } from "../support/access_rules.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { aPersistentVolume, aVolumeAttachment, testDriver } from "../fakes/kube_client.ts";
import type { FakeKubeApi } from "../fakes/kube_api.ts";
import { type ClusterStack, startClusterStack } from "../support/cluster_stack.ts";
import { cost, create, publishRequest, rejectsWith, state } from "../support/controller_calls.ts";

const shared = { block: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" } } as const;
const podsPath = "/api/v1/namespaces/apps/pods";
const timeAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

interface NodeState {
  readonly createdAgo?: number;
  readonly heartbeatAgo?: number;
  readonly ready?: string;
  readonly machine?: string;
  readonly taints?: readonly { key: string }[];
}

/** A cluster whose kubelets report the volumes that they use, and one shared volume. */
class Machines {
  readonly api: FakeKubeApi;
  readonly #cluster: ClusterStack;
  readonly volumeId: string;
  readonly #inUse = new Map<string, Set<string>>();

  constructor(cluster: ClusterStack, volumeId: string) {
    this.#cluster = cluster;
    this.api = cluster.api;
    this.volumeId = volumeId;
    this.api.put(volumesPath, aPersistentVolume(volumeId));
    for (const name of ["worker-1", "worker-2", "worker-3"]) this.report(name);
  }

  /** What the kubelet of a node reports. */
  report(
    name: string,
    over: NodeState = {},
    uses = this.#inUse.get(name)?.has(this.volumeId) ?? false,
  ): void {
    const { createdAgo = 86_400, heartbeatAgo = 60, ready = "True", machine = name, taints = [] } = over;
    this.api.put(nodesPath, {
      metadata: { name, creationTimestamp: timeAgo(createdAgo) },
      spec: { taints },
      status: {
        nodeInfo: { machineID: machine, systemUUID: machine },
        conditions: [{ type: "Ready", status: ready, lastHeartbeatTime: timeAgo(heartbeatAgo) }],
        volumesInUse: uses ? [`kubernetes.io/csi/${testDriver}^${this.volumeId}`] : [],
      },
    });
  }

  /** Attaches the volume, as the attacher and the kubelet do. */
  async attach(name: string): Promise<Record<string, string>> {
    const request = publishRequest(this.volumeId, name, shared);
    const { publishContext } = await this.#controller.call("ControllerPublishVolume", request);
    this.api.put(attachmentsPath, aVolumeAttachment(this.volumeId, name, { publishContext }));
    this.use(name, true);
    return publishContext;
  }

  /** Makes the kubelet start or stop using the volume, and report it. */
  use(name: string, uses: boolean): void {
    this.#inUse.set(name, new Set(uses ? [this.volumeId] : []));
    this.report(name);
  }

  /** Puts the pod of a virtual machine instance on a node. */
  run(machine: string, nodeName: string, phase = "Running"): void {
    this.api.put(podsPath, {
      metadata: {
        ...{ name: `virt-launcher-${machine}-${nodeName}`, namespace: "apps" },
        labels: { "kubevirt.io": "virt-launcher", "kubevirt.io/created-by": machine },
      },
      spec: {
        nodeName,
        volumes: [{ name: "disk", persistentVolumeClaim: { claimName: `claim-${this.volumeId}` } }],
      },
      status: { phase },
    });
  }

  /** Detaches the volume from a node, as the attacher does. */
  async detach(name: string): Promise<void> {
    const { metadata: { name: attachment } } = this.#attachment(name);
    this.api.put(attachmentsPath, {
      ...this.#attachment(name),
      metadata: { ...this.#attachment(name).metadata, deletionTimestamp: timeAgo(0) },
    });
    await this.#controller.call("ControllerUnpublishVolume", { volumeId: this.volumeId, nodeId: name });
    this.api.delete(attachmentsPath, attachment);
  }

  async isKeptOut(name: string, why: RegExp): Promise<void> {
    const request = publishRequest(this.volumeId, name, shared);
    const refused = this.#controller.call("ControllerPublishVolume", request);
    await rejectsWith(status.FAILED_PRECONDITION, refused, why);
  }

  /** The holders in the record, and whether it names a node that left without being fenced. */
  async record(): Promise<{ holders: string[]; hasUnfenced: boolean }> {
    const disk = (await state(this.#cluster.stack)).disks.find(({ slot }) => slot === this.volumeId);
    const parsed = parseComment(String(disk?.["comment"]));
    assert.ok(parsed.state === "record");
    const { holders, unfenced } = parsed.comment.record;
    return { holders: holders.map(({ nodeId }) => nodeId), hasUnfenced: unfenced !== undefined };
  }

  get #controller() {
    return this.#cluster.stack.clients.controller;
  }

  #attachment(name: string) {
    const found = this.api.all(attachmentsPath).find(({ spec }) =>
      (spec as { nodeName: string }).nodeName === name
    );
    return found ?? assert.fail(`${name} has no attachment`);
  }
}

async function withMachines(
  work: (machines: Machines, cluster: ClusterStack) => Promise<void>,
  pairs: "any" | "kubevirt" = "any",
): Promise<void> {
  const rules = [...clusterRules, ...namespaceRules, ...pairs === "any" ? [] : kubevirtRules];
  const prepare = (api: FakeKubeApi) => void (api.rules = rules);
  const flags = ["--reconcile", "off", "--migration-pairs", pairs];
  await using cluster = await startClusterStack({ prepare, flags });
  const volumeId = await create(cluster.stack, "pvc-vm", { volumeCapabilities: [shared] });
  await work(new Machines(cluster, volumeId), cluster);
  assert.deepEqual(cluster.api.requests.filter(({ status }) => status === 403), []);
}

Deno.test("ten live migrations between healthy nodes need no profile, no new epoch and no further command", async () => {
  await withMachines(async (machines, { stack }) => {
    const nqn = (await machines.attach("worker-1"))["nqn"];
    for (let at = 0; at < 10; at++) {
      const [from, to] = [at % 3 + 1, (at + 1) % 3 + 1].map((number) => `worker-${number}`);
      const execs = await cost(stack, async () => {
        assert.equal((await machines.attach(to!))["nqn"], nqn);
        machines.use(from!, false);
        await machines.detach(from!);
      });
      assert.equal(execs, 4, "two to join and two to leave");
      assert.deepEqual(await machines.record(), { holders: [to], hasUnfenced: false });
    }
  });
});

Deno.test("a partitioned source keeps a third node out until its kubelet says that it has given the volume up", async () => {
  await withMachines(async (machines) => {
    await machines.attach("worker-1");
    await machines.attach("worker-2");
    machines.report("worker-1", { ready: "Unknown", heartbeatAgo: 400 });
    await machines.detach("worker-1");
    assert.deepEqual(await machines.record(), { holders: ["worker-2"], hasUnfenced: true });
    await machines.isKeptOut("worker-3", /not ready: worker-1.*that node is seen.*worker-2 gives it up/);
    machines.report("worker-1");
    await machines.isKeptOut("worker-3", /uses the volume: worker-1/);
    machines.use("worker-1", false);
    await machines.attach("worker-3");
    assert.deepEqual(await machines.record(), { holders: ["worker-2", "worker-3"], hasUnfenced: false });
  });
});

Deno.test("a partitioned source keeps a third node out until the epoch ends, and only it may come back", async () => {
  await withMachines(async (machines) => {
    const { nqn } = await machines.attach("worker-1");
    await machines.attach("worker-2");
    machines.report("worker-1", { taints: [{ key: "node.kubernetes.io/out-of-service" }] });
    await machines.detach("worker-1");
    await machines.isKeptOut("worker-3", /out of service/);
    assert.equal((await machines.attach("worker-1"))["nqn"], nqn);
    machines.report("worker-1", { ready: "Unknown" });
    await machines.detach("worker-1");
    await machines.isKeptOut("worker-3", /not ready/);
    machines.use("worker-2", false);
    await machines.detach("worker-2");
    assert.notEqual((await machines.attach("worker-3"))["nqn"], nqn);
    assert.deepEqual(await machines.record(), { holders: ["worker-3"], hasUnfenced: false });
  });
});

Deno.test("a kubelet that was killed between NodeUnpublish and NodeUnstage keeps a third node out until it is back", async () => {
  await withMachines(async (machines) => {
    await machines.attach("worker-1");
    await machines.attach("worker-2");
    machines.report("worker-1", { heartbeatAgo: 600 });
    await machines.detach("worker-1");
    await machines.isKeptOut("worker-3", /not reported/);
    // The kubelet no longer knows the volume. The design accepts this as a sign, because the device was flushed when it
    // was closed.
    machines.report("worker-1", {}, false);
    await machines.attach("worker-3");
  });
});

Deno.test("a Node that was registered again, or is another machine, proves nothing about its predecessor", async () => {
  await withMachines(async (machines) => {
    await machines.attach("worker-1");
    await machines.attach("worker-2");
    machines.report("worker-1", { createdAgo: -60 }, false);
    await machines.detach("worker-1");
    await machines.isKeptOut("worker-3", /younger/);
    machines.report("worker-1", { machine: "clone" }, false);
    await machines.isKeptOut("worker-3", /another machine/);
    await machines.isKeptOut("worker-1", /another machine/);
    machines.api.delete(csiNodesPath, "worker-1");
    await machines.isKeptOut("worker-3", /registered on no node/);
  });
});

Deno.test("a pod that was deleted by force keeps a third node out for as long as its kubelet uses the volume", async () => {
  await withMachines(async (machines) => {
    await machines.attach("worker-1");
    await machines.attach("worker-2");
    await machines.detach("worker-1");
    await machines.isKeptOut("worker-3", /uses the volume: worker-1/);
    machines.use("worker-1", false);
    await machines.attach("worker-3");
  });
});

Deno.test("while the API server is away no volume is known to be released, and a node may still leave", async () => {
  await withMachines(async (machines) => {
    await machines.attach("worker-1");
    await machines.attach("worker-2");
    machines.use("worker-1", false);
    const away = { match: /volumeattachments$/, status: 503 };
    machines.api.faults.push(away);
    await machines.detach("worker-1");
    assert.equal((await machines.record()).hasUnfenced, true);
    await machines.isKeptOut("worker-3", /the cluster does not say/);
    machines.api.faults.length = 0;
    await machines.attach("worker-3");
  });
});

for (
  const [what, lose] of [
    ["was set to Failed", (machines: Machines) => machines.run("vm-1", "worker-1", "Failed")],
    [
      "is gone from the API",
      ({ api }: Machines) => void api.delete(podsPath, "virt-launcher-vm-1-worker-1"),
    ],
  ] as const
) {
  Deno.test(`the machine that replaces one whose pod ${what} gets the volume by a new epoch only`, async () => {
    await withMachines(async (machines) => {
      machines.run("vm-1", "worker-1");
      const lost = await machines.attach("worker-1");
      machines.report("worker-1", { ready: "Unknown", heartbeatAgo: 400 });
      lose(machines);
      machines.run("vm-2", "worker-2", "Pending");
      await machines.isKeptOut("worker-2", /node=worker-1 requested=worker-2: no pod .* on worker-1/);
      await machines.detach("worker-1");
      assert.notEqual((await machines.attach("worker-2"))["epoch"], lost["epoch"]);
      assert.deepEqual(await machines.record(), { holders: ["worker-2"], hasUnfenced: false });
    }, "kubevirt");
  });
}

Deno.test("the two pods of one machine share its volume, unless the node that has it stops reporting", async () => {
  await withMachines(async (machines) => {
    machines.run("vm-1", "worker-1");
    const { nqn } = await machines.attach("worker-1");
    machines.run("vm-1", "worker-2", "Pending");
    machines.report("worker-1", { ready: "Unknown" });
    await machines.isKeptOut("worker-2", /its Node is not ready: worker-1/);
    machines.report("worker-1");
    assert.equal((await machines.attach("worker-2"))["nqn"], nqn);
  }, "kubevirt");
});
