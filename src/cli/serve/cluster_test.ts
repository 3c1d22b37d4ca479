import assert from "node:assert/strict";
import { FakeKubeApi } from "../../../tests/fakes/kube_api.ts";
import { readServeConfig } from "../config/config.ts";
import { systemClock } from "../../host/clock.ts";
import { systemRandom } from "../../host/random.ts";
import { createLogger } from "../../telemetry/log.ts";
import { clusterHash } from "../../volume/model/ids.ts";
import { ClusterSide } from "./cluster.ts";

const router = ["--rds-address", "10.0.0.1", "--rds-password-file", "/p", "--rds-insecure-skip-verify"];

async function withSide(
  work: (api: FakeKubeApi, identified: (signal: AbortSignal) => Promise<string>) => Promise<void>,
): Promise<void> {
  await using api = new FakeKubeApi();
  const file = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  await Deno.writeTextFile(file, api.kubeconfig());
  const config = readServeConfig(["--mode", "controller", ...router, "--kubeconfig", file], () => undefined);
  const log = createLogger({ clock: systemClock, sink: () => {} });
  const adapters = { clock: systemClock, random: systemRandom, log };
  const side = await ClusterSide.open(config.cluster!, "rds.csi.srvlab.io", adapters);
  try {
    await work(api, async (signal) => (await side.identified(config.controller!, signal)).settings.cluster);
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
