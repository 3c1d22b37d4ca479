import assert from "node:assert/strict";
import { FakeKubeApi } from "../../../tests/fakes/kube_api.ts";
import { readServeConfig } from "../config/config.ts";
import { systemClock } from "../../host/clock.ts";
import { systemRandom } from "../../host/random.ts";
import { createLogger } from "../../telemetry/log.ts";
import { aPersistentVolume } from "../../../tests/fakes/kube_client.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { volumesPath } from "../../kubernetes/objects.ts";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { scaledClock } from "../../../tests/fakes/scaled_clock.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import type { ClaimLookup } from "../../telemetry/status/model.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { ClusterSide } from "./cluster.ts";
import type { ControllerDeps } from "../../controller/deps.ts";
import { RouterBoots } from "../../controller/reconcile/boots.ts";

const router = ["--rds-address", "10.0.0.1", "--rds-password-file", "/p", "--rds-insecure-skip-verify"];

async function withSide(
  work: (
    api: FakeKubeApi,
    identified: (signal: AbortSignal) => Promise<string>,
    side: ClusterSide,
    claimOf: ClaimLookup,
  ) => Promise<void>,
  flags: readonly string[] = [],
  clock: Clock = systemClock,
): Promise<void> {
  await using api = new FakeKubeApi();
  const file = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  await Deno.writeTextFile(file, api.kubeconfig());
  const args = ["--mode", "controller", ...router, "--kubeconfig", file, ...flags];
  const config = readServeConfig(args, () => undefined);
  let claimOf: ClaimLookup = () => undefined;
  const showClaims = (given: ClaimLookup) => claimOf = given;
  const log = createLogger({ clock, sink: () => {} });
  const adapters = { clock, random: systemRandom, log, showClaims };
  const side = await ClusterSide.open(config.cluster!, "rds.csi.srvlab.io", adapters);
  try {
    const identified = async (signal: AbortSignal) =>
      (await side.identified(config.routers[0]!, signal)).settings.cluster;
    await work(api, identified, side, (handle) => claimOf(handle));
  } finally {
    await side.close();
    await Deno.remove(file);
  }
}

Deno.test("identified() identifies the cluster by the uid of kube-system", async () => {
  await withSide(async (api, identified) => {
    api.put("/api/v1/namespaces", { metadata: { name: "kube-system", uid: "u-1" } });
    assert.equal(await identified(new AbortController().signal), clusterHash("u-1"));
  });
});

Deno.test("a volume's claim is found by its handle, on a router with a name too", async () => {
  await withSide(async (api, _, side, claimOf) => {
    const object = aPersistentVolume("nas2/pvc-1");
    object.metadata.name = "pv-1";
    api.put(volumesPath, object);
    api.put(volumesPath, aPersistentVolume("pvc-2"));
    const { deps } = testController();
    const loop = { run: (signal: AbortSignal) => ended(signal) };
    side.start([{ ...ownPart(deps), audits: loop, hardware: loop, ids: new VolumeIdPrefix("nas2/") }]);
    const limit = AbortSignal.timeout(30_000);
    while (claimOf("pvc-2") === undefined) await systemClock.sleep(5, limit);
    assert.equal(claimOf("nas2/pvc-1"), "apps/claim-nas2/pvc-1");
    assert.equal(claimOf("pvc-2"), "apps/claim-pvc-2");
    assert.equal(claimOf("pvc-1"), undefined);
  });
});

Deno.test("identified() does not keep a controller from stopping while the cluster does not answer", async () => {
  await withSide(async (api, identified) => {
    api.faults.push({ match: /./, status: 403 });
    const stop = new AbortController();
    const refused = assert.rejects(identified(stop.signal), { message: "stopped by SIGTERM" });
    while (api.requests.length === 0) await systemClock.sleep(5);
    stop.abort(new Error("stopped by SIGTERM"));
    await refused;
  });
});

Deno.test("a controller suspects others when it begins to lead, not when a lead that ran out goes on", async () => {
  const elected = ["--leader-election", "--lease-namespace", "storage", "--lease-identity", "a"];
  await withSide(
    async (api, _, side) => {
      const { deps } = testController();
      let suspected = 0;
      deps.memory.inDoubt.suspectOthers = () => suspected++;
      const loop = { run: (signal: AbortSignal) => ended(signal) };
      side.start([{ ...ownPart(deps), audits: loop, hardware: loop, ids: VolumeIdPrefix.none }]);
      const until = async (leads: boolean) => {
        const limit = AbortSignal.timeout(30_000);
        while ((side.lead!.refusal() === undefined) !== leads) await systemClock.sleep(5, limit);
      };
      await until(true);
      api.faults.push({ match: /leases/, status: 500 });
      await until(false);
      api.faults.length = 0;
      await until(true);
      // The loops of the lead that goes on have begun, too.
      await systemClock.sleep(200);
      assert.equal(suspected, 1);
    },
    elected,
    scaledClock(20),
  );
});

Deno.test("the loops of one router withdraw an unwanted export though another router has a volume of its id", async () => {
  await withSide(async (api, _, side) => {
    for (const [at, router] of ["nas1", "nas2"].entries()) {
      const object = aPersistentVolume(`${router}/pvc-1`);
      object.metadata.name = `pv-${at}`;
      api.put(volumesPath, object);
    }
    const { deps, store, clock } = testController();
    store.put(aDisk(aRecord({ epoch: { counter: 4, nonce: "0a0b0c0d" }, holders: [aHolder("node-1")] })));
    const loop = { run: (signal: AbortSignal) => ended(signal) };
    side.start([{ ...ownPart(deps), audits: loop, hardware: loop, ids: new VolumeIdPrefix("nas2/") }]);
    const limit = AbortSignal.timeout(30_000);
    while (store.disks.get("pvc-1")!.exported) {
      await clock.advance(60_000);
      await systemClock.sleep(5, limit);
    }
  });
});

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

function ownPart(deps: ControllerDeps) {
  return { deps, store: deps.store, boots: new RouterBoots(deps.clock) };
}
