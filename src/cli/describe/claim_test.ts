import assert from "node:assert/strict";
import type { FakeKubeApi, KubeObject } from "../../../tests/fakes/kube_api.ts";
import { aPersistentVolume, startKube, testDriver } from "../../../tests/fakes/kube_client.ts";
import { followClaim, podsOf } from "./claim.ts";
import { nextStep } from "./of_claim.ts";

const nowMs = Date.parse("2026-01-01T12:00:00Z");
const namespace = "/api/v1/namespaces/apps";

/** A claim that is bound, attached to node-1, and used there. */
function healthy(api: FakeKubeApi): void {
  claim(api, { volumeName: "pv-pvc-1", storageClassName: "rds-ext4" });
  storageClass(api, {});
  api.put("/api/v1/persistentvolumes", aPersistentVolume("pvc-1"));
  attachment(api, { attached: true });
  api.put("/apis/storage.k8s.io/v1/csinodes", {
    metadata: { name: "node-1" },
    spec: { drivers: [{ name: testDriver, nodeID: "node-1" }] },
  });
}

function claim(api: FakeKubeApi, spec: Record<string, unknown>): void {
  api.put(`${namespace}/persistentvolumeclaims`, { metadata: { name: "data", namespace: "apps" }, spec });
}

function storageClass(api: FakeKubeApi, over: Record<string, unknown>): void {
  api.put("/apis/storage.k8s.io/v1/storageclasses", {
    metadata: { name: "rds-ext4" },
    ...{ provisioner: testDriver, volumeBindingMode: "Immediate" },
    ...over,
  });
}

function attachment(api: FakeKubeApi, status: Record<string, unknown>): void {
  api.put("/apis/storage.k8s.io/v1/volumeattachments", {
    metadata: { name: "one" },
    spec: { attacher: testDriver, nodeName: "node-1", source: { persistentVolumeName: "pv-pvc-1" } },
    status,
  });
}

function event(
  api: FakeKubeApi,
  kind: string,
  name: string,
  message: string,
  over: Partial<KubeObject> = {},
): void {
  api.put(`${namespace}/events`, {
    metadata: { name: `${name}.${message.length}`, namespace: "apps" },
    ...{ type: "Warning", reason: "Failed", message, involvedObject: { kind, name } },
    lastTimestamp: "2026-01-01T11:58:00Z",
    ...over,
  });
}

/** The claim's volume is one of the other driver of this executable. */
function directory(api: FakeKubeApi): void {
  const volume = aPersistentVolume("pvc-1");
  const volumeHandle = "0123abcd@/share/k8s/pvc-1.9f86d081@pvc-1";
  const csi = { driver: "rds-directory.csi.srvlab.io", volumeHandle };
  api.put("/api/v1/persistentvolumes", { ...volume, spec: { ...volume["spec"] as object, csi } });
  api.delete("/apis/storage.k8s.io/v1/volumeattachments", "one");
}

function node(api: FakeKubeApi, ready: string): void {
  const conditions = [{ type: "Ready", status: ready, lastHeartbeatTime: "2026-01-01T11:50:00Z" }];
  api.put("/api/v1/nodes", { metadata: { name: "node-1" }, status: { conditions } });
}

const pending = { storageClassName: "rds-ext4" };

const scenes:
  readonly (readonly [what: string, at: string, found: RegExp, change: (api: FakeKubeApi) => void])[] = [
    ["it is well", "ok node", /no recent warning of a pod/, () => {}],
    ["there is none", "problem claim", /there is no claim data in apps/, (api) => {
      api.delete(`${namespace}/persistentvolumeclaims`, "data");
    }],
    ["it names no class", "problem claim", /no StorageClass/, (api) => claim(api, {})],
    ["its class is not there", "problem claim", /rds-none does not exist/, (api) => {
      claim(api, { storageClassName: "rds-none" });
    }],
    ["its class is another driver's", "problem claim", /belongs to other.example.com/, (api) => {
      claim(api, pending);
      storageClass(api, { provisioner: "other.example.com" });
    }],
    ["the pool is full", "problem claim", /has no volume: no room/, (api) => {
      claim(api, pending);
      event(api, "PersistentVolumeClaim", "other", "of another claim");
      event(api, "PersistentVolumeClaim", "data", "no room");
    }],
    ["it waits for a pod", "warning claim", /waits for a pod/, (api) => {
      claim(api, pending);
      storageClass(api, { volumeBindingMode: "WaitForFirstConsumer" });
    }],
    ["nobody answers", "problem claim", /no event gives a reason/, (api) => claim(api, pending)],
    ["its volume is another driver's", "problem volume", /belongs to the driver other.example.com/, (api) => {
      const volume = aPersistentVolume("pvc-1");
      const spec = volume["spec"] as { readonly csi: object };
      api.put("/api/v1/persistentvolumes", {
        ...volume,
        spec: { ...spec, csi: { ...spec.csi, driver: "other.example.com" } },
      });
    }],
    ["it is a shared directory, which is never attached", "ok node", /no recent warning/, directory],
    ["a pod cannot mount a shared directory", "problem node", /pod web: MountVolume/, (api) => {
      directory(api);
      event(api, "Pod", "web", 'MountVolume failed for volume "pv-pvc-1"');
    }],
    ["its volume is gone", "problem volume", /pv-pvc-1 is gone/, (api) => {
      api.delete("/api/v1/persistentvolumes", "pv-pvc-1");
    }],
    ["its node is ready", "ok node", /no recent warning of a pod/, (api) => node(api, "True")],
    ["its node is silent", "problem attachment", /is attached to node-1, which is not ready/, (api) => {
      node(api, "Unknown");
    }],
    ["no pod is placed", "warning attachment", /no pod that uses the claim is scheduled/, (api) => {
      api.delete("/apis/storage.k8s.io/v1/volumeattachments", "one");
    }],
    ["the node has no driver", "problem attachment", /node-1 has not registered the driver/, (api) => {
      api.put("/apis/storage.k8s.io/v1/csinodes", { metadata: { name: "node-1" }, spec: { drivers: [] } });
    }],
    ["it is refused", "problem attachment", /not attached to node-1: it is held by node-2/, (api) => {
      attachment(api, { attached: false, attachError: { message: "it is held by node-2" } });
    }],
    [
      "the pod cannot mount it",
      "problem node",
      /pod web: MountDevice failed for volume "pv-pvc-1"/,
      (api) => {
        event(api, "Pod", "db", 'MountDevice failed for volume "pv-other"');
        event(api, "Pod", "web", 'MountDevice failed for volume "pv-pvc-1"');
      },
    ],
    ["that was long ago", "ok node", /no recent warning of a pod/, (api) => {
      event(api, "Pod", "web", 'failed for volume "pv-pvc-1"', { lastTimestamp: "2026-01-01T11:00:00Z" });
    }],
  ];

for (const [what, at, found, change] of scenes) {
  Deno.test(`followClaim() ends where a claim hangs: ${what}`, async () => {
    await using kube = await startKube();
    healthy(kube.api);
    change(kube.api);
    const followed = { namespace: "apps", name: "data", driverName: testDriver };
    const { findings } = await followClaim(kube.client, followed, nowMs, new AbortController().signal);
    const last = findings.at(-1)!;
    assert.equal(`${last.state} ${last.check}`, at);
    assert.match(last.found, found);
    for (const one of findings.slice(0, -1)) assert.equal(one.state, "ok");
  });
}

const hangs = (check: string) => ({ check, state: "problem", found: "the finding" }) as const;
const steps: readonly (readonly [
  check: string | undefined,
  pods: readonly string[] | undefined,
  sentence: RegExp,
  podsLost?: boolean | "unknown",
])[] = [
  [undefined, ["web"], /^nothing hangs; if a pod has errors .*: kubectl -n apps delete pod web$/],
  [undefined, [], /^nothing hangs, and no pod uses it$/],
  ["claim", [], /^it hangs at the claim; once that is mended, it goes on by itself$/],
  ["attachment", ["web"], /^it hangs at the attachment; once that is mended, it goes on by itself$/],
  [
    "node",
    ["db", "web"],
    /^it hangs at the node; .* by itself; only a pod that ran before and has errors now .*: kubectl -n apps delete pod db web$/,
  ],
  ["router", ["web"], /^it hangs at the router; .* by itself; only a pod that ran before/],
  [
    "router",
    undefined,
    /^the router has restarted; once it is back, delete the pods: kubectl -n apps delete pod POD, for each POD that uses it$/,
    true,
  ],
  ["router", ["web"], /^the router did not say .* may work on: end none of them for this$/, "unknown"],
  ["node", ["web"], /^it hangs at the node; /, "unknown"],
  ["router", [], /it goes on by itself$/, true],
];

for (const [check, pods, sentence, podsLost] of steps) {
  const state = `${check ?? "nothing"} hangs, with the pods ${
    pods ?? "that it may not list"
  }, lost: ${podsLost}`;
  Deno.test(`nextStep() says what to do when ${state}`, () => {
    const used = { namespace: "apps", pods, podsLost };
    const said = nextStep(check === undefined ? undefined : hangs(check), used);
    assert.match(said, sentence);
    assert.doesNotMatch(said, /the finding/);
  });
}

Deno.test("podsOf() names the pods that use a claim, and none where it may not list them", async () => {
  await using kube = await startKube();
  const pod = (name: string, claimName: string) =>
    kube.api.put(`${namespace}/pods`, {
      metadata: { name, namespace: "apps" },
      spec: { volumes: [{ persistentVolumeClaim: { claimName } }, { emptyDir: {} }] },
    });
  for (const [name, claimName] of [["web", "data"], ["db", "data"], ["other", "logs"]] as const) {
    pod(name, claimName);
  }
  kube.api.put(`${namespace}/pods`, {
    metadata: { name: "job", namespace: "apps" },
    spec: { volumes: [{ name: "data", ephemeral: {} }] },
  });
  const pods = () => podsOf(kube.client, { namespace: "apps", name: "data" }, new AbortController().signal);
  assert.deepEqual(await pods(), ["db", "web"]);
  const ephemeral = { namespace: "apps", name: "job-data" };
  assert.deepEqual(await podsOf(kube.client, ephemeral, new AbortController().signal), ["job"]);
  kube.api.rules = [];
  assert.equal(await pods(), undefined);
});
