import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { startKube } from "../../tests/fakes/kube_client.ts";
import { ApiError } from "./api.ts";
import { ClusterLease } from "./lease.ts";
import { namespaceRules } from "../../tests/support/access_rules.ts";

const collection = "/apis/coordination.k8s.io/v1/namespaces/storage/leases";
const { signal } = new AbortController();

Deno.test("a Lease is made, renewed and handed on, and shows people the leader and since when", async () => {
  await using pair = await startKube();
  pair.api.rules = namespaceRules;
  const clock = new FakeClock();
  const name = "rds.csi.srvlab.io-controller";
  const lease = new ClusterLease({ api: pair.client, clock, namespace: "storage", name });
  assert.equal(await lease.read(signal), undefined);
  const mine = { holder: "a", durationSeconds: 15, transitions: 0 };
  const first = await lease.write(mine, undefined, signal);
  await clock.advance(5_000);
  const second = await lease.write(first, first, signal);
  assert.notEqual(second.version, first.version);
  const spec = () => pair.api.get(collection, name)?.["spec"];
  assert.deepEqual(spec(), {
    holderIdentity: "a",
    leaseDurationSeconds: 15,
    leaseTransitions: 0,
    acquireTime: "2026-01-01T00:00:00.000000Z",
    renewTime: "2026-01-01T00:00:05.000000Z",
  });
  await lease.write({ ...second, holder: "b", transitions: 1 }, second, signal);
  assert.deepEqual((spec() as Record<string, unknown>)["acquireTime"], "2026-01-01T00:00:05.000000Z");
  assert.equal((await lease.read(signal))?.holder, "b");
});

Deno.test("a Lease that another process has changed is not overwritten", async () => {
  await using pair = await startKube();
  const lease = (name: string) =>
    new ClusterLease({ api: pair.client, clock: new FakeClock(), namespace: "storage", name });
  const state = (holder: string) => ({ holder, durationSeconds: 15, transitions: 0 });
  const made = await lease("x").write(state("a"), undefined, signal);
  const conflict = (error: unknown) => ApiError.is(error, 409);
  await assert.rejects(lease("x").write(state("b"), undefined, signal), conflict);
  await lease("x").write(state("a"), made, signal);
  await assert.rejects(lease("x").write(state("b"), made, signal), conflict);
});
