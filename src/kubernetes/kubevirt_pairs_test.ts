import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { aPersistentVolume, type KubePair, startKube, testDriver } from "../../tests/fakes/kube_client.ts";
import type { MigrationPairs } from "../volume/ports/cluster_ports.ts";
import { kubevirtPairs } from "./kubevirt_pairs.ts";
import { volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { clusterRules, kubevirtRules } from "../../tests/support/access_rules.ts";

const path = "/api/v1/namespaces/apps/pods";
const { signal } = new AbortController();

async function withPairs(
  work: (
    scene: KubePair & { launcher(name: string, over?: Launcher): void; pairs: MigrationPairs },
  ) => Promise<void>,
): Promise<void> {
  await using pair = await startKube();
  pair.api.rules = [...clusterRules, ...kubevirtRules];
  pair.api.put(volumesPath, aPersistentVolume("v"));
  const volumes = new PersistentVolumes({ api: pair.client, clock: new FakeClock(), driverName: testDriver });
  const launcher = (
    name: string,
    { claim = "claim-v", machine = "vm-1", phase = "Running", labels }: Launcher = {},
  ) =>
    void pair.api.put(path, {
      metadata: {
        name,
        namespace: "apps",
        labels: labels ?? { "kubevirt.io": "virt-launcher", "kubevirt.io/created-by": machine },
      },
      spec: { volumes: [{ name: "x" }, { name: "disk", persistentVolumeClaim: { claimName: claim } }] },
      status: { phase },
    });
  await work({ ...pair, launcher, pairs: kubevirtPairs(pair.client, volumes) });
}

interface Launcher {
  readonly claim?: string;
  readonly machine?: string;
  readonly phase?: string;
  readonly labels?: Record<string, string>;
}

Deno.test("the two pods of one virtual machine may share a volume, whatever else runs in the namespace", async () => {
  await withPairs(async ({ launcher, pairs }) => {
    launcher("source");
    launcher("target", { phase: "Pending" });
    launcher("before", { machine: "vm-0", phase: "Succeeded" });
    launcher("another", { machine: "vm-9", claim: "another" });
    launcher("web", { labels: {}, claim: "web" });
    assert.equal(await pairs.reasonAgainst("v", signal), undefined);
  });
});

for (
  const [what, third, reason] of [
    ["runs", {}, /more than two pods.*third/],
    ["has succeeded", { phase: "Succeeded" }, undefined],
    ["has failed", { phase: "Failed" }, undefined],
    ["is another machine's", { machine: "vm-2" }, /several virtual machines/],
    ["is nobody's", { labels: { app: "x" } }, /the pod third uses it/],
  ] as const
) {
  Deno.test(`beside the two pods of a virtual machine a third one counts that ${what}`, async () => {
    await withPairs(async ({ launcher, pairs }) => {
      launcher("source");
      launcher("target", { phase: "Pending" });
      launcher("third", third);
      const found = await pairs.reasonAgainst("v", signal);
      if (reason === undefined) assert.equal(found, undefined);
      else assert.match(found ?? "", reason);
    });
  });
}

Deno.test("a disk that was plugged in later counts for the machine whose pod owns its pod", async () => {
  await withPairs(async ({ api, launcher, pairs }) => {
    launcher("source", { claim: "root" });
    const uid = api.get(path, "source")!.metadata.uid;
    api.put(path, {
      metadata: {
        ...{ name: "hp-volume", namespace: "apps", labels: { "kubevirt.io": "hotplug-disk" } },
        ownerReferences: [{ kind: "Pod", uid }],
      },
      spec: { volumes: [{ persistentVolumeClaim: { claimName: "claim-v" } }] },
      status: { phase: "Running" },
    });
    assert.equal(await pairs.reasonAgainst("v", signal), undefined);
  });
});

Deno.test("without a claim, or without an answer, no nodes share a volume", async () => {
  await withPairs(async ({ api, launcher, pairs }) => {
    const unbound = aPersistentVolume("unbound");
    delete (unbound["spec"] as { claimRef?: unknown }).claimRef;
    api.put(volumesPath, unbound);
    assert.match(await pairs.reasonAgainst("unbound", signal) ?? "", /no claim is bound/);
    launcher("one");
    api.faults.push({ match: /pods/, status: 500 });
    await assert.rejects(pairs.reasonAgainst("v", signal), { kind: "unavailable" });
  });
});

Deno.test("a volume that is bound to another claim now is judged by that one, whatever the objects' names", async () => {
  for (const name of ["pv-v", "pv-again"]) {
    await withPairs(async ({ api, launcher, pairs }) => {
      launcher("source");
      launcher("target");
      assert.equal(await pairs.reasonAgainst("v", signal), undefined);
      const volume = aPersistentVolume("v");
      const spec = volume["spec"] as { claimRef: { name: string } };
      spec.claimRef.name = "another";
      if (name !== "pv-v") api.delete(volumesPath, "pv-v");
      api.put(volumesPath, { ...volume, metadata: { name } });
      // The machines of its earlier claim do not matter any more.
      assert.notEqual(await pairs.reasonAgainst("v", signal), undefined);
      launcher("other-source", { claim: "another", machine: "vm-2" });
      launcher("other-target", { claim: "another", machine: "vm-2" });
      assert.equal(await pairs.reasonAgainst("v", signal), undefined);
    });
  }
});
