import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { FakeKubeApi } from "../../tests/fakes/kube_api.ts";
import { testDriver } from "../../tests/fakes/kube_client.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { maxConnections } from "./client.ts";
import { Cluster } from "./cluster.ts";
import { eventually } from "../../tests/support/eventually.ts";

/** A cluster whose API server answers no list while the test lasts, and what the test lets run beside it. */
interface Slow {
  readonly clock: FakeClock;
  readonly api: FakeKubeApi;
  readonly cluster: Cluster;
  readonly reported: string[];
  readonly signal: AbortSignal;
  /** Lets something go on until the end, however often it fails. */
  run(work: () => Promise<unknown>): void;
}

async function withSlowLists(test: (slow: Slow) => Promise<void>): Promise<void> {
  const clock = new FakeClock();
  await using api = new FakeKubeApi();
  api.put("/api/v1/namespaces", { metadata: { name: "kube-system", uid: "u-1" } });
  const answers = Promise.withResolvers<void>();
  api.faults.push({
    match: /^GET .*\/(persistentvolumes|volumeattachments|csinodes|nodes)$/,
    until: answers.promise,
  });
  const kubeconfig = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  await Deno.writeTextFile(kubeconfig, api.kubeconfig());
  const reported: string[] = [];
  const cluster = await Cluster.open({
    address: { kubeconfig },
    driverName: testDriver,
    clock,
    random: new SeededRandom(),
    warn: (message) => reported.push(message),
    report: (message) => reported.push(message),
  });
  const stop = new AbortController();
  const running: Promise<void>[] = [];
  const goOn = async (work: () => Promise<unknown>) => {
    while (!stop.signal.aborted) await work().catch(() => clock.sleep(1_000, stop.signal)).catch(() => {});
  };
  try {
    const run = (work: () => Promise<unknown>) => void running.push(goOn(work));
    await test({ clock, api, cluster, reported, signal: stop.signal, run });
  } finally {
    stop.abort(new Error("the test is over"));
    answers.resolve();
    await Promise.all(running);
    cluster.close();
    await Deno.remove(kubeconfig);
  }
}

Deno.test("the Lease is renewed while lists whose pages take seconds wait for every other connection", async () => {
  await withSlowLists(async ({ clock, api, cluster, reported, signal, run }) => {
    for (let n = 0; n < 3 * maxConnections; n++) run(() => cluster.volumes.readAll(signal));
    await eventually(() => api.atOnce >= maxConnections);
    run(() => cluster.election("storage", "a").run((lead) => clock.sleep(3_600_000, lead), signal));
    await eventually(() => reported.includes("this controller leads now"));
    for (let renewals = 1; renewals <= 12; renewals++) {
      await clock.advance(2_400);
      await eventually(async () => {
        // On a slow machine the pause before this renewal may begin only now.
        await clock.advance(50);
        return api.count(/^PUT .*\/leases\//) >= renewals;
      });
    }
    assert.deepEqual(reported, ["this controller leads now"]);
  });
});

Deno.test("lists of the loops leave half of the connections to calls", async () => {
  await withSlowLists(async ({ api, cluster, signal, run }) => {
    const context = { requestId: "audit", signal };
    for (let n = 0; n < maxConnections; n++) {
      run(() => cluster.use.volumes(context));
      run(() => cluster.use.attachments(context));
      run(() => cluster.use.othersHandles(context));
      run(() => cluster.use.allAttachments(context));
    }
    run(() => cluster.startupTaint("a-taint").pass(signal));
    run(() => cluster.volumes.list(signal));
    await eventually(() => api.atOnce >= maxConnections / 2);
    for (let n = 0; n < 10; n++) assert.equal(await cluster.uid(signal), "u-1");
    assert.equal(api.atOnce, maxConnections / 2);
  });
});
