// Several controllers of which one serves: what the others answer, and how the lead passes from one to the next.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { RunningDriver } from "../../src/cli/serve/serve.ts";
import type { CsiClients } from "../../src/csi/server/client.ts";
import { clusterRules, namespaceRules } from "../support/access_rules.ts";
import type { FakeKubeApi } from "../fakes/kube_api.ts";
import { type ClusterStack, startClusterStack } from "../support/cluster_stack.ts";
import { create, publishRequest, rejectsWith, state } from "../support/controller_calls.ts";
import { eventually } from "../support/eventually.ts";

interface Replica {
  readonly driver: RunningDriver;
  readonly clients: CsiClients;
}

/** Two controllers, of which the first leads. */
async function startReplicas(): Promise<{ cluster: ClusterStack; first: Replica; second: Replica }> {
  const prepare = (api: FakeKubeApi) => void (api.rules = [...clusterRules, ...namespaceRules]);
  const cluster = await startClusterStack({ prepare, flags: ["--leader-election"] });
  await eventually(() => isReady(cluster.stack));
  return { cluster, first: cluster.stack, second: await cluster.stack.another() };
}

async function isReady({ clients }: Replica): Promise<boolean> {
  const { ready } = await clients.identity.call("Probe", {}, 2_000);
  return ready?.value === true;
}

async function metric({ driver }: Replica, name: string): Promise<number> {
  const text = await (await fetch(`${driver.metricsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
}

async function readyz({ driver }: Replica): Promise<number> {
  const response = await fetch(`${driver.metricsUrl}/readyz`);
  await response.body?.cancel();
  return response.status;
}

Deno.test("one of two controllers serves; the other names the leader, asks the router nothing, and is ready", async () => {
  const { cluster, first, second } = await startReplicas();
  await using _ = cluster;
  const id = await create(cluster.stack, "pvc-1");
  assert.equal(await isReady(second), false);
  const refused = second.clients.controller.call(
    "ControllerPublishVolume",
    publishRequest(id, "worker-1"),
  );
  await rejectsWith(status.UNAVAILABLE, refused, /another controller leads: holder=rds-csi-/);
  await rejectsWith(status.UNAVAILABLE, second.clients.controller.call("ListVolumes", {}), /leads/);
  const { capabilities } = await second.clients.identity.call("GetPluginCapabilities", {});
  assert.ok(capabilities.length > 0, "who it is, it tells");
  assert.deepEqual([await metric(first, "rds_csi_leader"), await metric(second, "rds_csi_leader")], [1, 0]);
  assert.deepEqual([await readyz(first), await readyz(second)], [200, 200]);
  const { sessions } = await state(cluster.stack) as unknown as { readonly sessions: readonly unknown[] };
  assert.equal(sessions.length, 1, "only the one that serves has a connection");
});

Deno.test("a controller that stops hands the lead over within seconds", async () => {
  const { cluster, first, second } = await startReplicas();
  await using _ = cluster;
  const id = await create(cluster.stack, "pvc-1");
  const request = publishRequest(id, "worker-1");
  const reported = await first.clients.controller.call("ControllerPublishVolume", request);
  const startedMs = performance.now();
  // The probe waits, as a sidecar's does: it is answered when the controller leads.
  const probed = second.clients.identity.call("Probe", {}, 30_000);
  await first.driver.stop(1_000);
  assert.equal((await probed).ready?.value, true);
  const seconds = (performance.now() - startedMs) / 1000;
  assert.ok(seconds < 6, `it took ${seconds} s`);
  const again = await second.clients.controller.call("ControllerPublishVolume", request);
  assert.deepEqual(again.publishContext, reported.publishContext);
  assert.equal(await metric(second, "rds_csi_leader"), 1);
});

Deno.test("what the one before may have sent finds another record as soon as the next one has answered", async () => {
  const { cluster, first, second } = await startReplicas();
  await using _ = cluster;
  const id = await create(cluster.stack, "pvc-1");
  const comment = async () => (await state(cluster.stack)).disks.find(({ slot }) => slot === id)?.["comment"];
  const request = publishRequest(id, "worker-1");
  await first.clients.controller.call("ControllerPublishVolume", request);
  const before = await comment();
  await first.clients.controller.call("ControllerPublishVolume", request);
  assert.equal(await comment(), before, "its own changes have all ended");
  await first.driver.stop(1_000);
  await eventually(() => isReady(second));
  await second.clients.controller.call("ControllerPublishVolume", request);
  const after = await comment();
  assert.notEqual(after, before);
  await second.clients.controller.call("ControllerPublishVolume", request);
  assert.equal(await comment(), after, "once is enough");
});

Deno.test("a controller that has lost the lead answers nothing more and says that it has to end", async () => {
  const { cluster, first } = await startReplicas();
  await using _ = cluster;
  const id = await create(cluster.stack, "pvc-1");
  const leases = "/apis/coordination.k8s.io/v1/namespaces/storage/leases";
  const [lease] = cluster.api.all(leases);
  cluster.api.put(leases, { ...lease!, spec: { ...lease!["spec"] as object, holderIdentity: "somebody" } });
  assert.match(await first.driver.lost, /another controller has taken it/);
  const late = first.clients.controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "" });
  await rejectsWith(status.UNAVAILABLE, late, /has lost the lead/);
  assert.equal(await metric(first, "rds_csi_leader"), 0);
  assert.equal(
    cluster.api.all(leases)[0]!["spec"] && (cluster.api.all(leases)[0]!["spec"] as {
      holderIdentity: string;
    }).holderIdentity,
    "somebody",
  );
});

Deno.test("a leader without its API server stops serving when its Lease ends, and serves again when the API server is back", async () => {
  const { cluster, first, second } = await startReplicas();
  await using _ = cluster;
  await second.driver.stop(1_000);
  const id = await create(cluster.stack, "pvc-1");
  const publish = (timeoutMs = 2_000) =>
    first.clients.controller.call("ControllerPublishVolume", publishRequest(id, "worker-1"), timeoutMs);
  const { publishContext } = await publish();
  cluster.api.faults.push({ match: /./, status: 503 });
  const refusal = /could not renew its lead in time/;
  await eventually(() => publish().then(() => false, (error) => refusal.test(String(error))));
  const commands = (await cluster.stack.count()).execs;
  await rejectsWith(status.UNAVAILABLE, publish(), refusal);
  assert.equal((await cluster.stack.count()).execs, commands);
  const startedMs = performance.now();
  const waiting = publish(30_000);
  cluster.api.faults.length = 0;
  assert.deepEqual((await waiting).publishContext, publishContext);
  assert.ok(performance.now() - startedMs < 6_000);
});
