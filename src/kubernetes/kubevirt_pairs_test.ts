import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { aPersistentVolume, type KubePair, startKube, testDriver } from "../../tests/fakes/kube_client.ts";
import { aHolder } from "../../tests/fakes/records.ts";
import { machineHash } from "../volume/model/host/machine.ts";
import { kubevirtPairs } from "./kubevirt_pairs.ts";
import { csiNodesPath, nodesPath, volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { clusterRules, kubevirtRules } from "../../tests/support/access_rules.ts";

const path = "/api/v1/namespaces/apps/pods";
const { signal } = new AbortController();

/** The nodes of the pair, by Node. */
const nodes = { n1: "id-1", n2: "id-2", n3: "id-3" } as const;

interface Scene extends KubePair {
  launcher(name: string, nodeName: keyof typeof nodes, over?: Launcher): void;
  /** Reports a Node's state as its kubelet does. */
  report(
    name: string,
    over?: { readonly ready?: string; readonly ageMs?: number; readonly taint?: string },
  ): void;
  /** Why the node n2 may not have the volume beside n1. */
  reason(volumeId?: string): Promise<string | undefined>;
}

async function withPairs(work: (scene: Scene) => Promise<void>): Promise<void> {
  await using pair = await startKube();
  const { api, client } = pair;
  api.rules = [...clusterRules, ...kubevirtRules];
  api.put(volumesPath, aPersistentVolume("v"));
  const clock = new FakeClock();
  const options = { api: client, clock, driverName: testDriver };
  const pairs = kubevirtPairs({ ...options, volumes: new PersistentVolumes(options) });
  const report: Scene["report"] = (name, { ready = "True", ageMs = 60_000, taint } = {}) =>
    void api.put(nodesPath, {
      metadata: { name },
      spec: { taints: taint === undefined ? [] : [{ key: taint }] },
      status: {
        nodeInfo: { machineID: `machine of ${name}`, systemUUID: name },
        conditions: [
          { type: "Ready", status: ready, lastHeartbeatTime: new Date(clock.now() - ageMs).toISOString() },
        ],
      },
    });
  for (const [name, nodeID] of Object.entries(nodes)) {
    api.put(csiNodesPath, { metadata: { name }, spec: { drivers: [{ name: testDriver, nodeID }] } });
    report(name);
  }
  const launcher: Scene["launcher"] = (
    name,
    nodeName,
    { claim = "claim-v", machine = "vm-1", phase = "Running", labels } = {},
  ) =>
    void api.put(path, {
      metadata: {
        name,
        namespace: "apps",
        labels: labels ?? { "kubevirt.io": "virt-launcher", "kubevirt.io/created-by": machine },
      },
      spec: {
        nodeName,
        volumes: [{ name: "x" }, { name: "disk", persistentVolumeClaim: { claimName: claim } }],
      },
      status: { phase },
    });
  const machine = machineHash("machine of n1", "n1");
  const holders = [
    aHolder("id-1", { mode: "multi-node-multi-writer", ...machine === undefined ? {} : { machine } }),
  ];
  const reason = (volumeId = "v") => pairs.reasonAgainst({ volumeId, nodeId: "id-2", holders }, signal);
  await work({ ...pair, launcher, report, reason });
}

interface Launcher {
  readonly claim?: string;
  readonly machine?: string;
  readonly phase?: string;
  readonly labels?: Record<string, string>;
}

Deno.test("the two pods of one virtual machine may share a volume, whatever else runs in the namespace", async () => {
  await withPairs(async ({ launcher, reason }) => {
    launcher("source", "n1");
    launcher("target", "n2", { phase: "Pending" });
    launcher("before", "n1", { machine: "vm-0", phase: "Succeeded" });
    launcher("another", "n2", { machine: "vm-9", claim: "another" });
    launcher("web", "n2", { labels: {}, claim: "web" });
    assert.equal(await reason(), undefined);
  });
});

for (
  const [what, third, expected] of [
    ["runs", {}, /more than two pods.*third/],
    ["has succeeded", { phase: "Succeeded" }, undefined],
    ["has failed", { phase: "Failed" }, undefined],
    ["is another machine's", { machine: "vm-2" }, /several virtual machines/],
    ["is nobody's", { labels: { app: "x" } }, /the pod third uses it/],
  ] as const
) {
  Deno.test(`beside the two pods of a virtual machine a third one counts that ${what}`, async () => {
    await withPairs(async ({ launcher, reason }) => {
      launcher("source", "n1");
      launcher("target", "n2", { phase: "Pending" });
      launcher("third", "n3", third);
      const found = await reason();
      if (expected === undefined) assert.equal(found, undefined);
      else assert.match(found ?? "", expected);
    });
  });
}

Deno.test("a disk that was plugged in later counts for the machine whose pod owns its pod", async () => {
  await withPairs(async ({ api, launcher, reason }) => {
    launcher("source", "n1", { claim: "root" });
    launcher("target", "n2", { claim: "root" });
    for (const [owner, nodeName] of [["source", "n1"], ["target", "n2"]] as const) {
      const { uid } = api.get(path, owner)!.metadata;
      api.put(path, {
        metadata: {
          ...{ name: `hp-${owner}`, namespace: "apps", labels: { "kubevirt.io": "hotplug-disk" } },
          ownerReferences: [{ kind: "Pod", uid }],
        },
        spec: { nodeName, volumes: [{ persistentVolumeClaim: { claimName: "claim-v" } }] },
        status: { phase: "Running" },
      });
    }
    assert.equal(await reason(), undefined);
  });
});

for (
  const [what, lose, expected] of [
    [
      "was set to Failed",
      ({ launcher }) => launcher("old", "n1", { machine: "vm-0", phase: "Failed" }),
      /on n1/,
    ],
    ["is gone from the API", () => {}, /on n1/],
    [
      "is gone with its Node",
      ({ api }) => {
        api.delete(nodesPath, "n1");
        api.delete(csiNodesPath, "n1");
      },
      /registered on no Node under the id id-1/,
    ],
  ] as readonly (readonly [string, (scene: Scene) => void, RegExp])[]
) {
  Deno.test(`a new machine does not join the export of a lost node whose pod ${what}`, async () => {
    await withPairs(async (scene) => {
      scene.launcher("new", "n2", { machine: "vm-1", phase: "Pending" });
      lose(scene);
      assert.match(await scene.reason() ?? "", expected);
    });
  });
}

for (
  const [what, lose, expected] of [
    ["is not ready", ({ report }) => report("n1", { ready: "Unknown" }), /not ready: n1/],
    ["has not reported for long", ({ report }) => report("n1", { ageMs: 361_000 }), /not reported.*n1/],
    [
      "is out of service",
      ({ report }) => report("n1", { taint: "node.kubernetes.io/out-of-service" }),
      /out of service: n1/,
    ],
    ["is gone", ({ api }) => void api.delete(nodesPath, "n1"), /no Node of its name: n1/],
    [
      "has been set up on another machine",
      ({ api }) => {
        const { status, ...node } = api.get(nodesPath, "n1")!;
        const nodeInfo = { machineID: "another", systemUUID: "n1" };
        api.put(nodesPath, { ...node, status: { ...status as object, nodeInfo } });
      },
      /another machine has its name now: n1/,
    ],
  ] as readonly (readonly [string, (scene: Scene) => void, RegExp])[]
) {
  Deno.test(`no node joins a machine's export whose holder's Node ${what}`, async () => {
    await withPairs(async (scene) => {
      scene.launcher("source", "n1");
      scene.launcher("target", "n2", { phase: "Pending" });
      assert.equal(await scene.reason(), undefined);
      lose(scene);
      assert.match(await scene.reason() ?? "", expected);
    });
  });
}

Deno.test("without a claim, or without an answer, no nodes share a volume", async () => {
  await withPairs(async ({ api, launcher, reason }) => {
    const unbound = aPersistentVolume("unbound");
    delete (unbound["spec"] as { claimRef?: unknown }).claimRef;
    api.put(volumesPath, unbound);
    assert.match(await reason("unbound") ?? "", /no claim is bound/);
    launcher("one", "n1");
    api.faults.push({ match: /pods/, status: 500 });
    await assert.rejects(reason(), { kind: "unavailable" });
  });
});

Deno.test("a volume that is bound to another claim now is judged by that one, whatever the objects' names", async () => {
  for (const name of ["pv-v", "pv-again"]) {
    await withPairs(async ({ api, launcher, reason }) => {
      launcher("source", "n1");
      launcher("target", "n2");
      assert.equal(await reason(), undefined);
      const volume = aPersistentVolume("v");
      const spec = volume["spec"] as { claimRef: { name: string } };
      spec.claimRef.name = "another";
      if (name !== "pv-v") api.delete(volumesPath, "pv-v");
      api.put(volumesPath, { ...volume, metadata: { name } });
      // The machines of its earlier claim do not matter any more.
      assert.notEqual(await reason(), undefined);
      launcher("other-source", "n1", { claim: "another", machine: "vm-2" });
      launcher("other-target", "n2", { claim: "another", machine: "vm-2" });
      assert.equal(await reason(), undefined);
    });
  }
});
