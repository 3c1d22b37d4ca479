import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { aPersistentVolume, startKube, testDriver } from "../../tests/fakes/kube_client.ts";
import { ApiError } from "./api.ts";
import { ClaimAnnotations } from "./format_consents.ts";
import { volumesPath } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { clusterRules } from "../../tests/support/access_rules.ts";

const claims = "/api/v1/namespaces/apps/persistentvolumeclaims";
const { signal } = new AbortController();

async function start() {
  const pair = await startKube();
  pair.api.rules = clusterRules;
  pair.api.put(volumesPath, aPersistentVolume("v"));
  const volumes = new PersistentVolumes({ api: pair.client, clock: new FakeClock(), driverName: testDriver });
  const annotate = (value: string, uid = "claim-uid-v") => {
    const annotations = { "rds.csi.srvlab.io/allow-format": value };
    pair.api.put(claims, { metadata: { name: "claim-v", namespace: "apps", uid, annotations } });
  };
  return { ...pair, volumes, annotate, consents: new ClaimAnnotations(pair.client, volumes) };
}

Deno.test("allowsFormat() goes by the claim that has the volume, for that volume and epoch alone", async () => {
  await using pair = await start();
  const allows = (epoch: number) => pair.consents.allowsFormat("v", epoch, signal);
  assert.equal(await allows(2), false, "there is no claim");
  for (
    const [value, uid, expected] of [
      ["v@2", undefined, true],
      ["v@3", undefined, false],
      ["v@02", undefined, false],
      ["w@2", undefined, false],
      ["v", undefined, false],
      ["v@2", "a new claim of that name", false],
    ] as const
  ) {
    pair.annotate(value, uid);
    assert.equal(await allows(2), expected, `${value} ${uid}`);
  }
});

Deno.test("allowsFormat() ignores a PersistentVolume that belongs to another claim now", async () => {
  await using pair = await start();
  await pair.volumes.list(signal);
  pair.annotate("v@2");
  assert.deepEqual(pair.consents.claimOf("v"), { namespace: "apps", name: "claim-v" });
  assert.equal(pair.consents.claimOf("w"), undefined);
  const volume = aPersistentVolume("v");
  const claimRef = { namespace: "apps", name: "claim-v", uid: "another" };
  pair.api.put(volumesPath, { ...volume, spec: { ...volume["spec"] as object, claimRef } });
  assert.equal(await pair.consents.allowsFormat("v", 2, signal), false);
});

Deno.test("allowsFormat() fails if the claim cannot be read", async () => {
  await using pair = await start();
  pair.api.rules = clusterRules.filter(({ resources }) => resources[0] !== "persistentvolumeclaims");
  await assert.rejects(
    pair.consents.allowsFormat("v", 2, signal),
    (error: unknown) => ApiError.is(error, 403),
  );
});
